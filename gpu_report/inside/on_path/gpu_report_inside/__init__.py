"""Callbacks that tell a recorder what YOLO is doing (loaded through the environment, see `gpu_report.inside`)."""

DEFAULT_CALLBACKS = "ultralytics.utils.callbacks.base"  # the module whose callbacks every training begins with
