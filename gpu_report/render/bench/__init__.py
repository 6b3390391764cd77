"""Stage 4 of a benchmark: one page, Markdown, JSON and text for a terminal, all of the same rows and sentences."""
