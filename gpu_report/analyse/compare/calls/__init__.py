"""A run that calls models compared with one or several baselines that do."""
