"""Reading text, CSV and JSON of any tool, and what a log says once it is read."""
