"""What readers take away: one-file copies and notebooks, which run alone."""
