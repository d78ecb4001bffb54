"""The blocks of a page, run: outputs, figures, and what is remembered of them."""
