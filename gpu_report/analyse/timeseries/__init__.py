"""Arithmetic on readings in time: intervals, weighted means, trends. Knows of no training and of no YOLO."""
