"""How much of a trace is read and kept: what holds more was made to fill a reader's memory, or is broken."""

from typing import Final

MIB: Final = 2**20
BLOCK_BYTES: Final = MIB // 2  # read at a time: some 2,000 events, which take 2 MiB when decoded
LARGEST_EVENT: Final = 4 * MIB  # one with all shapes and a deep stack has 20 kB
LARGEST_HEADER: Final = 16 * MIB  # before the events: 8 GPUs and 1,000 process groups have 300 kB
LARGEST_FOOTER: Final = MIB  # after the events: the file's own name, and counts
MOST_BYTES: Final = 8 * 1024 * MIB  # unpacked; the largest trace in a report of a bug has 2.2 GB
MOST_ROWS: Final = 8_000_000  # kept: a trace of 2.2 GB has as many; they take 450 MiB
MOST_NAMES: Final = 200_000  # distinct ones: a compiled YOLO has 2,000
LONGEST_NAME: Final = 4_096  # characters: a template of CUTLASS has 1,500
MOST_NAME_CHARACTERS: Final = 64 * MIB  # of all names together
MOST_THREADS: Final = 10_000
MOST_DEVICES: Final = 256
MOST_BAD: Final = 10_000  # events that cannot be read: a file with more is not worth the time, 0.1 ms each
MOST_BRACES: Final = 10_000  # looked at for the end of an event, in a block that has none
LARGEST_US: Final = 1e17  # a time that a clock can show: the year 5138
LONGEST_US: Final = 1e12  # of an event: 11 days, while the longest window has minutes
MOST_STEPS: Final = 10_000
LARGEST_DEVICE: Final = 65_535  # index of a GPU
