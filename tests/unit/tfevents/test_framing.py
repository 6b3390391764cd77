"""Records of event files: as they were written, and what is left of them in files that are cut, damaged or huge."""

import struct
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tensorboard import START_S, image_record, scalar_event

from gpu_report.tfevents.crc32c import masked_crc32c
from gpu_report.tfevents.framing import LARGEST_READ, RecordReader, pack_record
from gpu_report.tfevents.wire import fields, int_field, signed, varint

EVENTS = [scalar_event("train/box_loss", struct.pack("<f", at), at, START_S + at) for at in range(20)]


def read(path, data, **options):
    """Return the whole records of a file with these bytes, and its reader."""
    path.write_bytes(data)
    with path.open("rb") as file:
        reader = RecordReader(file, **options)
        return [record.data for record in reader if record.whole], reader


def test_records_come_back_in_order(tmp_path):
    found, reader = read(tmp_path / "f", b"".join(map(pack_record, EVENTS)))
    assert found == EVENTS
    assert (reader.damaged, reader.cut, reader.stopped) == (0, False, False)


@pytest.mark.parametrize("lost", [1, 4, 15, 16, 40])
def test_a_file_that_is_cut_has_all_but_its_last_record(tmp_path, lost):
    found, reader = read(tmp_path / "f", b"".join(map(pack_record, EVENTS))[:-lost])
    assert found == EVENTS[:-1]
    assert reader.cut


def test_a_record_whose_data_are_damaged_is_left_out(tmp_path):
    records = [pack_record(event) for event in EVENTS]
    records[3] = records[3][:20] + b"\x00\xff" + records[3][22:]
    found, reader = read(tmp_path / "f", b"".join(records))
    assert found == EVENTS[:3] + EVENTS[4:]
    assert reader.damaged == 1


def test_after_a_length_that_is_damaged_the_next_record_is_found(tmp_path):
    records = [pack_record(event) for event in EVENTS]
    records[3] = b"\xff" * 8 + records[3][8:]
    found, reader = read(tmp_path / "f", b"".join(records))
    assert found == EVENTS[:3] + EVENTS[4:]
    assert reader.damaged == 1


def test_after_megabytes_of_nothing_the_next_record_is_found(tmp_path):
    first, *rest = [pack_record(event) for event in EVENTS]
    for filling in (b"\0", b"\x09", b"\0\0\0\0abcd\x09"):
        data = first + filling * (3_000_000 // len(filling)) + b"".join(rest)
        found, _ = read(tmp_path / "f", data)
        assert found == EVENTS


def test_a_huge_image_is_stepped_over(tmp_path):
    data = pack_record(EVENTS[0]) + image_record(LARGEST_READ * 20) + pack_record(EVENTS[1])
    found, reader = read(tmp_path / "f", data)
    assert found == EVENTS[:2]
    assert reader.damaged == 0


def test_seven_gigabytes_of_images_take_no_time(tmp_path):
    path, size = tmp_path / "f", 7 << 30
    length = struct.pack("<Q", size)
    with path.open("wb") as file:  # sparse: it takes no disk
        file.write(pack_record(EVENTS[0]) + length + struct.pack("<I", masked_crc32c(length)))
        file.seek(size + 4, 1)
        file.write(pack_record(EVENTS[1]))
    began = time.perf_counter()
    with path.open("rb") as file:
        found = [record.data for record in RecordReader(file) if record.whole]
    assert found == EVENTS[:2]
    assert time.perf_counter() - began < 2


def test_no_more_records_are_read_than_a_training_writes(tmp_path):
    found, reader = read(tmp_path / "f", b"".join(map(pack_record, EVENTS)), most_records=5)
    assert found == EVENTS[:5]
    assert reader.stopped


def test_a_search_ends_too(tmp_path):
    found, reader = read(tmp_path / "f", b"\0\0\0\0abcd\x09" * 100_000, most_records=1000)
    assert (found, reader.stopped) == ([], True)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_happens_to_a_file_what_is_read_was_written(tmp_path, data):
    written = bytearray(b"".join(map(pack_record, EVENTS)))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(written) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "insert", "remove"]))
        if how == "flip":
            written[at] ^= data.draw(st.integers(1, 255))
        elif how == "cut" and at > 100:
            del written[at:]
        elif how == "insert":
            written[at:at] = data.draw(st.binary(max_size=40))
        else:
            del written[at : at + data.draw(st.integers(1, 40))]
    found, _ = read(tmp_path / "f", bytes(written))
    assert all(event in EVENTS for event in found)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_come_back(value):
    ((number, _, found),) = fields(int_field(7, value))
    assert (number, signed(found)) == (7, value)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_fields_or_a_value_error(data, is_head):
    try:
        assert all(number >= 0 for number, _, _ in fields(data, is_head=is_head))
    except ValueError:
        assert data


def test_a_number_of_more_than_64_bits_is_none():
    with pytest.raises(ValueError, match="cut"):
        list(fields(varint(8) + b"\xff" * 11))
