"""The images that all variants get, decoded once and kept in memory: a call is of the model, not of a disk."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Images = list[npt.NDArray[np.uint8]]

SYNTHETIC = "synthetic"
MOST_IMAGES = 64  # of a folder, the first by name: 64 images of 1080p are 400 MB in each process
ENDINGS = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
SYNTHETIC_IMAGES = 16
PATCHES = 24  # of a synthetic image: enough edges that no model finds it empty, and parts of it stay noise
SEED = 20_261_125


def image_files(folder: Path) -> list[Path]:
    """Return the images of a folder that are used."""
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)[:MOST_IMAGES]


def read_images(source: str, imgsz: int) -> tuple[Images, int]:
    """Return the images, H x W x 3 (BGR), and how many files could not be read; ValueError where none can.

    `source` is a folder or SYNTHETIC.
    """
    if source == SYNTHETIC:
        return synthetic(imgsz), 0
    cv2: Any = import_module("cv2")
    read = [cv2.imread(str(path)) for path in image_files(Path(source))]
    images: Images = [image for image in read if image is not None]
    if not images:
        raise ValueError(f"no image in {source} can be read")
    return images, len(read) - len(images)


def synthetic(imgsz: int) -> Images:
    """Return square images of coloured patches on noise: the same in every process."""
    chance = np.random.default_rng(SEED)
    images = chance.integers(0, 80, (SYNTHETIC_IMAGES, imgsz, imgsz, 3), dtype=np.uint8)
    for image in images:
        for _ in range(PATCHES):
            x, y = chance.integers(0, imgsz, 2)
            wide, high = chance.integers(imgsz // 20 + 1, imgsz // 3 + 2, 2)
            image[y : y + high, x : x + wide] = chance.integers(0, 255, 3)
    return list(images)
