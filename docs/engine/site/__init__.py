"""What MkDocs asks: hooks, lists of chapters, API pages."""
