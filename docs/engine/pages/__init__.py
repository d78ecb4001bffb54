"""A page as it is written, and as the site shows it; what can be wrong with it."""
