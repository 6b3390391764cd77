"""The images that variants get."""

import numpy as np
import pytest
from PIL import Image

from gpu_report.bench.sources import SYNTHETIC, image_files, read_images


def test_synthetic_images_are_square_and_the_same_each_time():
    (first, unreadable), (again, _) = read_images(SYNTHETIC, 96), read_images(SYNTHETIC, 96)
    assert unreadable == 0
    assert {image.shape for image in first} == {(96, 96, 3)}
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert len({image.tobytes() for image in first}) == len(first)


def test_images_of_a_folder_come_by_name_and_what_is_none_is_left_out(tmp_path):
    for name, size in (("b.jpg", (64, 48)), ("a.png", (32, 32))):
        Image.new("RGB", size).save(tmp_path / name)
    (tmp_path / "c.jpg").write_text("no image")
    (tmp_path / "notes.txt").write_text("no image")
    assert [path.name for path in image_files(tmp_path)] == ["a.png", "b.jpg", "c.jpg"]
    images, unreadable = read_images(str(tmp_path), 640)
    assert [image.shape for image in images] == [(32, 32, 3), (48, 64, 3)]
    assert unreadable == 1


def test_a_folder_of_which_nothing_can_be_read_is_refused(tmp_path):
    (tmp_path / "c.jpg").write_text("no image")
    with pytest.raises(ValueError, match=r"no image in .* can be read"):
        read_images(str(tmp_path), 640)
