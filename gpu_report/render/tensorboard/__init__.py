"""A run as an event file of TensorBoard."""

from gpu_report.render.tensorboard.event_file import render_event_file

__all__ = ["render_event_file"]
