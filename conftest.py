"""Lets pytest run the pages; it looks for plugins in this folder only."""

pytest_plugins = ["engine.plugin", "browsers", "built_site", "rows_by_day", "pytester"]
