"""The page before anything of a run is in it."""
