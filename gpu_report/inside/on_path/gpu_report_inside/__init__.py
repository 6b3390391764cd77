"""Callbacks that tell a recorder what YOLO is doing (loaded through the environment, see `gpu_report.inside`)."""
