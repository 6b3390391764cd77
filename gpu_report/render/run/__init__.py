"""A run's summary for machines and for the terminal."""
