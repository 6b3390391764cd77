"""Two ranks on the CPU over gloo: what ultralytics does with several GPUs, from its own launcher file on.

Run as a script (data, project, port, model), it launches as `device=0,1` does; the ranks import `CpuTrainer` from here.
`TwoRanks` is a model that trains so.
"""

import os
import subprocess
import sys

import torch.distributed as dist
from torch import nn
from ultralytics import YOLO
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.utils.dist import generate_ddp_file


class OnCpu(nn.parallel.DistributedDataParallel):
    """DDP that takes no notice of devices."""

    def __init__(self, module, device_ids=None, **options):
        super().__init__(module, **options)


class CpuTrainer(DetectionTrainer):
    """A trainer that believes in its ranks although its device is the CPU."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        nn.parallel.DistributedDataParallel = OnCpu

    def _setup_ddp(self, *args):
        dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=self.world_size)

    def _do_train(self, *args):
        super()._do_train(*([self.world_size] if args else []))  # up to 8.3 it is told the number of ranks

    def final_eval(self):
        """Do without: it asks for CUDA in a rank."""


class TwoRanks(YOLO):
    """A model whose training is that of `launch`."""

    def train(self, data, project, port, model):
        """Train with the callbacks of this model, which versions before 8.4.140 do not hand on to the ranks."""
        launch(data, project, port, model, self.callbacks)


def launch(data, project, port, model, callbacks=None):
    """Make a trainer as the launching process does, which calls no callbacks, and start its ranks."""
    args = {"data": data, "epochs": 2, "imgsz": 64, "batch": 8, "workers": 0, "device": "cpu", "plots": False}
    callbacks = dict(callbacks or YOLO(model).callbacks)
    kept, callbacks["on_pretrain_routine_start"] = callbacks["on_pretrain_routine_start"], []
    trainer = CpuTrainer(overrides={**args, "project": project, "name": "ddp", "model": model}, _callbacks=callbacks)
    trainer.callbacks["on_pretrain_routine_start"] = kept
    file = generate_ddp_file(trainer)
    ranks = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", port, file]
    subprocess.run(ranks, check=True)


if __name__ == "__main__":
    from cpu_ddp import launch as launch_by_name  # the ranks must find the trainer under a name that they can import

    launch_by_name(*sys.argv[1:])
