"""A saved kernel log of any common format: its lines on the wall clock, and those around a recording."""
