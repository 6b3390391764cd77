"""Have YOLO scan a data set, which it remembers beside the labels: DATA_YAML names it."""

import os

from ultralytics.cfg import get_cfg
from ultralytics.data.build import build_yolo_dataset
from ultralytics.data.utils import check_det_dataset

data = check_det_dataset(os.environ["DATA_YAML"])
for part in ("train", "val"):
    build_yolo_dataset(get_cfg(), data[part], 16, data, mode=part)
