"""What formats are called in `--from` (no imports: the help text loads nothing heavy)."""

from typing import Final

AUTO: Final = "auto"
NAMES: Final = (
    "nvidia-smi",
    "dmon",
    "pmon",
    "nvidia-smi-table",
    "gpustat",
    "nvitop",
    "prometheus",
    "wandb",
    "mlflow",
    "clearml",
    "telegraf",
    "tensorboard",
)
