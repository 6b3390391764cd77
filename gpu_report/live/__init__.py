"""`serve`: a page beside a recording while it goes on. It reads the run folder; the recorder knows nothing of it."""
