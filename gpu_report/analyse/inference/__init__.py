"""Calls of models that serve: how fast, how steadily, and where their time went."""
