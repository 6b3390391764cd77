"""Gates from a file: found, read, and refused with a reason."""

import os
import time

import pytest

from gpu_report.cli.gate_config import read_config
from gpu_report.errors import InputError, UsageError

CFG = "[metadata]\nname = x\n[gpu-report]\nfail_on =\n    util.mean:-10%\n    xid.fatal:0\nwarn_on = energy:+10%\n"
TOML = 'fail_on = ["epoch_time:+5%"]\n'


def test_setup_cfg_has_a_section_of_lines_in_which_percent_signs_are_no_code(tmp_path):
    (tmp_path / "setup.cfg").write_text(CFG)
    config = read_config(folder=tmp_path)
    assert (config.fail_on, config.warn_on) == (("util.mean:-10%", "xid.fatal:0"), ("energy:+10%",))


def test_gpu_report_toml_comes_first(tmp_path):
    (tmp_path / "setup.cfg").write_text(CFG)
    (tmp_path / "gpu-report.toml").write_text(TOML)
    config = read_config(folder=tmp_path)
    assert (config.fail_on, config.warn_on) == (("epoch_time:+5%",), ())
    assert config.path.name == "gpu-report.toml"


def test_without_a_file_or_a_section_there_are_none(tmp_path):
    assert read_config(folder=tmp_path).path is None
    (tmp_path / "setup.cfg").write_text("[metadata]\nname = x\n")
    assert read_config(folder=tmp_path).path is None


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gpu-report.toml", "fail_on = ", "is no TOML"),
        ("gpu-report.toml", 'fail_on = "epoch_time:+5%"', "is a list of gates"),
        ("gpu-report.toml", '[check]\nfail_on = ["xid:0"]', "stand at the top of the file: remove the line [check]"),
        ("gpu-report.toml", "fail_on = [5]", "is a list of gates"),
        ("gpu-report.toml", 'fails_on = ["xid:0"]', "there is no setting fails_on"),
        ("setup.cfg", "[gpu-report]\nfail = xid:0\n", "there is no setting fail"),
        ("setup.cfg", "no section\n", "cannot be read"),
    ],
)
def test_a_broken_file_is_wrong_use_and_is_named(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as error:
        read_config(folder=tmp_path)
    assert name in str(error.value)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_named_must_be_readable(tmp_path):
    (tmp_path / "gates.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        read_config(tmp_path / "gates.toml")


@pytest.mark.parametrize("name", ["gpu-report.toml", "setup.cfg"])
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (os.mkfifo, InputError),
        (lambda path: path.symlink_to("/dev/zero"), InputError),
        (lambda path: path.mkdir(), UsageError),
        (lambda path: path.write_bytes(b"\xff\xfe"), UsageError),
        (lambda path: path.symlink_to("nothing"), UsageError),
        (lambda path: path.symlink_to(path.name), UsageError),
    ],
    ids=["pipe", "device", "folder", "encoding", "link to nothing", "link to itself"],
)
def test_what_cannot_be_read_in_a_working_directory_is_refused_at_once(tmp_path, name, make, error):
    make(tmp_path / name)
    began = time.monotonic()
    with pytest.raises(error) as refused:
        read_config(folder=tmp_path)
    assert refused.value.exit_code in {2, 4}
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)
    assert time.monotonic() - began < 2
