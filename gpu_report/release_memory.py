"""Memory that is not used any more, for other threads and for the system."""

import contextlib
import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8  # mallopt(3), as glibc's malloc.h has them
NEVER = -1


def keep_one_heap() -> None:
    """Have the C library keep one heap for all threads and arrays, where it is one that can (mallopt(3), glibc).

    Else what one thread gave back is not there for another: of reading and packing a day of eight GPUs a tenth (30 of
    367 MB). And what was freed at the heap's end, or is larger than 32 MB, goes back to the system, which clears the
    pages for the next array anew: a sixth of a month's CPU, and the most that is held at once hardly differs. So it is
    only given back where that is asked for (below). numpy is to ask for no pages of 2 MB, of which more are cleared
    than are used. It is for a process of our own, before its first thread and before numpy. Arrow, in which pandas
    keeps text where pyarrow is there, takes its memory from it, too: its own allocator reserves a GiB of address space,
    which a process may not have (`ulimit -v`).

    Nor is numpy to begin a thread a core for products of matrices, of which there are none here: that takes a tenth of
    a short run's report on two cores.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library, or none to be asked
        library = ctypes.CDLL(None)
        library.mallopt(M_ARENA_MAX, 1)
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, NEVER)


def give_back_memory() -> None:
    """Have the C library give back what was freed, where it is one that can (malloc_trim(3), glibc).

    Of what reading a week's files takes, it would keep a fifth as long as the process lives (0.3 of 1.6 GB), in pieces
    too small for the arrays of the analysis. For a day of eight GPUs it takes 3 ms, for a week 30.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library, or none to be asked
        ctypes.CDLL(None).malloc_trim(0)
