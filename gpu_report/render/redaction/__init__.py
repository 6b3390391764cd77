"""An analysis without what says whose it is."""
