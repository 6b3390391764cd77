"""Packages that were installed into a folder of the user's, and the user's own code beside ultralytics."""

import pytest
from support.stacks import process

from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.load.installed import with_installed
from gpu_report.model import Frame


def kinds(*files):
    """Return whose code each file is, of a process that stood in all of them."""
    stack = tuple(Frame(file, 1, "f") for file in files)
    (noted,) = with_installed([process((0, 1, stack))])
    (frames,) = noted.stacks.values()
    return [kind_of(frame) for frame in frames]


def test_a_package_beside_others_is_no_code_of_the_users():
    files = ("/tmp/site/thop/profile.py", "/tmp/site/ultralytics/nn/conv.py", "/tmp/site/polars/api.py")
    assert kinds(*files, "/home/me/train.py") == ["library", "yolo", "library", "own"]


@pytest.mark.parametrize(
    "files",
    [
        ("/home/me/project/train.py", "/home/me/project/ultralytics/ultralytics/nn/conv.py"),
        ("/home/me/project/tools/data.py", "/home/me/project/ultralytics/nn/conv.py"),
        ("/opt/project/data.py", "/opt/torch/.venv/lib/python3.12/site-packages/torch/x.py", "/opt/ultralytics/a/b.py"),
        ("/tmp/site/train.py", "/tmp/site/ultralytics/nn/conv.py", "/tmp/site/numpy/core.py"),
    ],
    ids=["beside a checkout", "beside a copy", "beside an environment of that name", "in the folder itself"],
)
def test_the_users_own_code_stays_so(files):
    assert kinds(*files)[0] == "own"
