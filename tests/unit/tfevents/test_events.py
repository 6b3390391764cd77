"""Scalars of event files as torch and TensorFlow 2 write them, and of files that nobody should have written."""

import math
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from support.tensorboard import START_S, image_record, scalar_event, write_by_torch
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.util.tensor_util import make_tensor_proto

from gpu_report.errors import InputError
from gpu_report.tfevents import event_files, read_event_file
from gpu_report.tfevents.events import event_head, version_event
from gpu_report.tfevents.framing import pack_record

SCALARS = [("train/box_loss", 2.5, 1, START_S + 30), ("val/box_loss", -1.0, 1, START_S + 36), ("a", 1e30, -7, START_S)]


def everything(_):
    return True


def found_in(path, wanted=everything, **options):
    return [(s.tag, s.value, s.step, s.wall_s) for s in read_event_file(path, wanted, **options).scalars]


@pytest.mark.parametrize("new_style", [False, True])
def test_what_torch_writes_is_read_as_it_was_meant(tmp_path, new_style):
    path = write_by_torch(tmp_path / "run", SCALARS, new_style=new_style)
    assert found_in(path) == [(tag, pytest.approx(value), step, at) for tag, value, step, at in SCALARS]
    assert read_event_file(path, everything).begun_s == START_S
    assert read_event_file(path, everything).problems == ()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors_of_one_number_as_tensorflow_writes_scalars(tmp_path, dtype):
    event = Event(wall_time=START_S, step=3)
    event.summary.value.add(tag="loss", tensor=make_tensor_proto(np.array(0.5, dtype=dtype)))
    event.summary.value.add(tag="image", tensor=make_tensor_proto(np.zeros((3, 3), dtype=dtype)))
    event.summary.value.add(tag="text", tensor=make_tensor_proto("no number"))
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(pack_record(event.SerializeToString()))
    assert found_in(path) == [("loss", 0.5, 3, START_S)]


def test_the_graph_of_a_model_has_a_time_however_large_it_is(tmp_path):
    for size in (10, 1_000_000):
        path = tmp_path / f"events.out.tfevents.{size}"
        graph = Event(wall_time=START_S + 5, graph_def=b"\x0a" * size).SerializeToString()
        path.write_bytes(pack_record(version_event(START_S)) + pack_record(graph))
        file = read_event_file(path, everything)
        assert (file.begun_s, file.graph_s, file.scalars) == (START_S, START_S + 5, ())


def test_nan_and_infinity_are_read_as_such_and_a_time_that_is_none_is_left_out(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    values = [math.nan, math.inf, -math.inf]
    events = [scalar_event("loss", struct.pack("<f", value), 1, START_S) for value in values]
    events += [
        scalar_event("loss", struct.pack("<f", 1), 1, wall_s) for wall_s in (math.nan, math.inf, -1.0, 0.0, 1e300)
    ]
    path.write_bytes(b"".join(map(pack_record, events)))
    file = read_event_file(path, everything)
    assert [str(scalar.value) for scalar in file.scalars] == ["nan", "inf", "-inf"]
    assert file.problems == ("events.out.tfevents.1 is damaged in 5 places: what stood there is left out.",)


def test_only_wanted_tags_are_kept_and_no_more_than_asked_for(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    events = [
        scalar_event(tag, struct.pack("<f", at), at, START_S + at) for at in range(100) for tag in ("a", "b", "x" * 500)
    ]
    path.write_bytes(b"".join(map(pack_record, events)))
    assert {tag for tag, *_ in found_in(path, lambda tag: tag == "a")} == {"a"}
    assert len(found_in(path)) == 200
    assert len(found_in(path, most=17)) == 17
    assert "only its beginning" in read_event_file(path, everything, 17).problems[0]


def test_images_between_scalars_are_stepped_over(tmp_path):
    path = tmp_path / "events.out.tfevents.1"
    one, two = (scalar_event("a", struct.pack("<f", at), at, START_S + at) for at in (1, 2))
    path.write_bytes(pack_record(one) + image_record(5_000_000) + image_record(100) + pack_record(two))
    assert [value for _, value, *_ in found_in(path)] == [1.0, 2.0]


@pytest.mark.parametrize(
    "data", [b"", b"PNG", b"\0" * 1000, os.urandom(5000), pack_record(b"no event"), pack_record(b"")]
)
def test_what_is_no_event_file_is_refused(tmp_path, data):
    (tmp_path / "events.out.tfevents.1").write_bytes(data)
    with pytest.raises(InputError, match="holds no event of TensorBoard"):
        read_event_file(tmp_path / "events.out.tfevents.1", everything)


def test_what_never_ends_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "events.out.tfevents.1")
    with pytest.raises(InputError, match="named pipe"):
        read_event_file(tmp_path / "events.out.tfevents.1", everything)
    with pytest.raises(InputError, match="cannot be read"):
        read_event_file(tmp_path / "not-there", everything)


def test_a_folder_s_event_files_by_name(tmp_path):
    for name in ("events.out.tfevents.2", "events.out.tfevents.1", "results.csv"):
        (tmp_path / name).touch()
    (tmp_path / "tfevents").mkdir()
    assert [path.name for path in event_files(tmp_path)] == ["events.out.tfevents.1", "events.out.tfevents.2"]
    assert event_files(Path("/not/there")) == []


def test_an_event_without_a_summary_is_an_event(tmp_path):
    (tmp_path / "events.out.tfevents.1").write_bytes(pack_record(event_head(START_S, 3)))
    assert read_event_file(tmp_path / "events.out.tfevents.1", everything).scalars == ()
