"""Records the GPU while a YOLO run trains and says, in one HTML file, when it was idle and why."""

__version__ = "0.1.0"
