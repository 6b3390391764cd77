"""A job of several nodes as a page, as JSON and for a terminal."""
