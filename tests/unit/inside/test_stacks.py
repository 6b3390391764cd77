"""The notes of where a process stands: what a block holds, and that nothing of ours reaches the training."""

import json
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from gpu_report.inside.on_path.gpu_report_inside import notes, process_role, stacks, threads
from gpu_report.inside.on_path.gpu_report_inside.writer import DraftFile
from gpu_report.load.stacks import load_stacks
from tests.conftest import REPOSITORY, clean_environment, wait_for

ON_PATH = REPOSITORY / "gpu_report" / "inside" / "on_path"


class Clock:
    """The monotonic clock itself."""

    def t(self, wall_s, mono_s):
        return mono_s


@pytest.fixture
def read(tmp_path):
    """Write blocks as one process, and return what a reader makes of them."""

    def written(*blocks):
        (tmp_path / "77.jsonl").write_bytes(b"".join(blocks))
        (process,), problems = load_stacks(tmp_path, Clock(), 1e9)
        assert problems == ()
        return process

    return written


def here():
    """Stand in a line, with nothing around it: the frame of a generator that waits."""

    def stands():
        yield

    waiting.append(stands())
    next(waiting[-1])
    return waiting[-1].gi_frame


waiting = []


def stood(process):
    """Return where a process stood, as (since, function)."""
    return [
        (round(start, 2), process.stacks[number][0].function if number else None)
        for start, number in zip(process.start_s, process.number, strict=True)
    ]


def test_a_stack_is_named_once_and_told_only_when_it_changes(read):
    block = notes.Notes(0.05)
    same, other = here(), sys._getframe()
    for at_s in (10.0, 10.05, 10.1):
        block.note(block.known.stack(same), at_s)
    block.note(block.known.stack(other), 10.2)
    first = block.block("main", 15.0)
    block.end(15.0)
    block.note(block.known.stack(same), 15.05)
    second = block.block("main", 20.0)
    process = read(first, second)
    me = "test_a_stack_is_named_once_and_told_only_when_it_changes"
    assert stood(process) == [(10.0, "stands"), (10.2, me), (15.0, me), (15.05, "stands")]
    assert process.end_s.tolist() == pytest.approx([10.2, 15.0, 15.05, 20.0])
    assert process.stacks[process.number[0]][0].file == __file__
    assert len(second) < len(first) / 2


def test_a_block_can_be_written_before_it_is_full(read):
    block = notes.Notes(0.05)
    block.note(block.known.stack(here()), 10.0)
    block.block("main", 12.0)
    block.note(block.known.stack(sys._getframe()), 13.0)
    assert [since for since, _ in stood(read(block.block("main", 14.0)))] == [10.0, 13.0]


def test_other_threads_and_who_kept_the_lock_of_the_interpreter(read):
    block = notes.Notes(0.05)
    block.note(block.known.stack(here()), 10.0)
    logger, plots = block.known.thread("Thread-7 (logger)"), block.known.thread("plots")
    stack = block.known.stack(here())
    block.threads({0: (logger, stack)}, 10.0)
    block.threads({0: (logger, stack), 1: (plots, stack)}, 11.0)
    block.held(12.0, 3.2, 0.4)
    block.threads({1: (plots, stack)}, 13.0)
    process = read(block.block("main", 14.0))
    assert [(t.name, t.start_s.tolist(), t.end_s.tolist()) for t in process.threads] == [
        ("Thread (logger)", [10.0], [13.0]),
        ("plots", [11.0], [14.0]),
    ]
    (held,) = process.lock_held
    assert (held.start_t_s, held.end_t_s, held.cpu_s) == (12.0, 14.0, 0.4)


def test_more_stacks_than_there_can_be_are_not_told_apart(monkeypatch):
    monkeypatch.setattr(notes, "MOST_STACKS", 1)
    known = notes.Dictionary()
    assert known.stack(here()) == 1
    assert known.stack(sys._getframe()) == notes.OTHER


def test_a_deep_stack_is_cut_at_its_outer_end(read):
    def deep(levels):
        return sys._getframe() if not levels else deep(levels - 1)

    block = notes.Notes(0.05)
    block.note(block.known.stack(deep(200)), 1.0)
    process = read(block.block("main", 2.0))
    assert len(process.stacks[process.number[0]]) == notes.DEEPEST


def test_frames_of_the_import_system_take_no_room(read):
    code = compile("def imports(deeper):\n    return deeper()", "<frozen importlib._bootstrap>", "exec")
    exec(code, names := {})

    def module(levels):
        return names["imports"](lambda: module(levels - 1)) if levels else sys._getframe()

    block = notes.Notes(0.05)
    block.note(block.known.stack(module(5)), 1.0)
    process = read(block.block("main", 2.0))
    assert "imports" not in {frame.function for frame in process.stacks[process.number[0]]}


def test_many_stacks_in_a_block_keep_their_places(read):
    block = notes.Notes(0.05)
    frames = [here() for _ in range(300)]
    numbers = []
    for at, frame in enumerate(frames):  # each in a function of its own would be another stack: here it is one line
        numbers.append(block.known.stack(frame))
        block.note(at + 1, 10.0 + at * 0.05)
    told = json.loads(block.block("main", 30.0))
    assert len(set(numbers)) == 1
    assert told["seconds"] == 20.0
    assert len({notes._letters(place) for place in range(5000)}) == 5000


def test_a_draft_gives_way_to_what_follows_and_is_never_left_behind(tmp_path):
    (tmp_path / "run").mkdir()
    file = DraftFile("stacks")
    path = tmp_path / "run" / "stacks" / f"{os.getpid()}.jsonl"
    for line, draft in ((b"{1234567}\n", True), (b"{12}\n", True), (b"{3}\n", False), (b"{4}\n", True)):
        file.append(str(tmp_path / "run"), line, draft=draft)
    assert [line.strip() for line in path.read_text().splitlines()] == ["{3}", "{4}"]
    DraftFile("stacks").append(str(tmp_path / "run"), b"{5}\n")  # another process of this pid
    assert [line.strip() for line in path.read_text().splitlines()] == ["{3}", "{4}", "{5}"]


SCRIPT = """
import ctypes, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from gpu_report_inside import stacks
lock = threading.Lock()
def keeps_the_lock():
    with lock:
        time.sleep(3)
def in_c():
    ctypes.PyDLL(None).usleep(2_000_000)  # as an extension that does not let go of the interpreter's lock
def waits():
    with lock:
        pass
stacks.start()
threading.Thread(target=keeps_the_lock, name="logger", daemon=True).start()
time.sleep(0.2)
waits()
in_c()
if sys.argv[2] == "killed":
    time.sleep(2.5)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("end", ["ended", "killed"])
def test_a_process_notes_itself_to_its_end(tmp_path, end):
    env = {**clean_environment(), "GPU_REPORT_RUN_FOLDER": str(tmp_path)}
    subprocess.run([sys.executable, "-c", SCRIPT, ON_PATH, end], env=env, timeout=60, check=end == "ended")
    (process,), problems = load_stacks(tmp_path / "stacks", Clock(), 1e9)
    assert problems == ()
    assert process.role == "main"
    spent = {}
    for start, stop, number in zip(process.start_s, process.end_s, process.number, strict=True):
        function = process.stacks[number][0].function
        spent[function] = spent.get(function, 0) + stop - start
    assert spent["waits"] == pytest.approx(2.8, abs=0.7)
    assert spent["in_c"] == pytest.approx(2.0, abs=0.7)
    (held,) = [held for held in process.lock_held if held.duration_s > 1]
    assert held.duration_s == pytest.approx(2.0, abs=0.7)
    assert held.cpu_s < 0.5
    (logger,) = [thread for thread in process.threads if thread.name == "logger"]
    assert process.stacks[logger.number[0]][0].function == "keeps_the_lock"


LOOKED_AT = """
import ctypes, sys, time
sys.path.insert(0, sys.argv[1])
from gpu_report_inside import stacks
stacks.PROBE_S = 0.3  # long enough to be met
def in_c():
    ctypes.PyDLL(None).usleep(1_500_000)
def goes_on():
    open(__import__("os").devnull).close()  # lets go of the lock
stacks.start()
sys.modules["torch"] = sys
while not any(frame.f_code.co_name == "_probe" for frame in sys._current_frames().values()):
    sum(range(1000))
in_c()
goes_on()
time.sleep(0.5)
"""


def test_who_takes_the_lock_while_we_look_at_the_cpu_is_named_and_not_the_line_after(tmp_path):
    env = {**clean_environment(), "GPU_REPORT_RUN_FOLDER": str(tmp_path)}
    subprocess.run([sys.executable, "-c", LOOKED_AT, ON_PATH], env=env, check=True, timeout=60)
    (process,), _ = load_stacks(tmp_path / "stacks", Clock(), 1e9)
    (held,) = [held for held in process.lock_held if held.duration_s > 1]
    stay = int(np.searchsorted(process.start_s, (held.start_t_s + held.end_t_s) / 2, side="right")) - 1
    assert process.stacks[int(process.number[stay])][0].function.startswith("in_c")


RIVALLED = """
import ctypes, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from gpu_report_inside import stacks
def in_c():
    ctypes.PyDLL(None).usleep(250_000)
def goes_on():
    with open(os.devnull) as file:  # lets go of the lock
        pass
    os.stat(os.devnull)
def little_things():
    while True:
        time.sleep(0.003)
threading.Thread(target=little_things, daemon=True).start()
stacks.start()
sys.modules["torch"] = sys
for _ in range(16):
    time.sleep(0.06)
    in_c()
    goes_on()
time.sleep(0.3)
"""


def test_where_another_thread_may_have_got_the_lock_before_us_no_line_is_named_rather_than_the_next(tmp_path):
    env = {**clean_environment(), "GPU_REPORT_RUN_FOLDER": str(tmp_path)}
    subprocess.run([sys.executable, "-c", RIVALLED, ON_PATH], env=env, check=True, timeout=60)
    (process,), _ = load_stacks(tmp_path / "stacks", Clock(), 1e9)
    middles = [(held.start_t_s + held.end_t_s) / 2 for held in process.lock_held]
    stays = np.searchsorted(process.start_s, middles, side="right") - 1
    named = {frame.function for stay in stays for frame in process.stacks.get(int(process.number[stay]), ())[:1]}
    assert len(middles) >= 3
    assert all(name.startswith("in_c") for name in named), named


@pytest.mark.skipif(sys.platform != "linux", reason="a clock of Linux")
def test_a_thread_that_used_no_cpu_did_not_wait_for_the_lock(monkeypatch):
    asks = threading.Event()
    sleeper = threading.Thread(target=asks.wait)
    sleeper.start()
    monkeypatch.setattr(threading, "_active", {sleeper.ident: sleeper})
    time.sleep(0.1)  # until it sleeps
    rivals = threads.PythonThreads(threads.MainThread())
    assert not rivals.may_have_waited(1.0)
    monkeypatch.undo()
    spins = threading.Thread(target=lambda: sum(range(1_000_000)))
    rivals.look()
    spins.start()  # nobody has looked at it
    assert rivals.may_have_waited(1.0)
    asks.set()
    for each in (sleeper, spins):
        each.join()


@pytest.mark.skipif(sys.platform != "linux", reason="a clock of Linux")
def test_a_thread_may_be_called_anything():
    class Unnamed(threading.Thread):
        name = None

    ends = threading.Event()
    thread = Unnamed(target=ends.wait)
    rivals = threads.PythonThreads(threads.MainThread())
    thread.start()
    assert rivals.may_have_waited(1.0)  # nobody has looked at it
    ends.set()
    thread.join()


def test_a_thread_of_ours_wakes_at_the_beat_and_by_itself_where_nobody_beats():
    beat, woken = threads.Beat(), threading.Event()
    beat.start()
    waits = threading.Thread(target=lambda: (beat.wait(0.01), woken.set()))
    waits.start()
    assert not woken.wait(0.2)
    beat.now(time.monotonic())
    assert woken.wait(5)
    again = threading.Thread(target=beat.wait, args=(0.01,))
    again.start()
    wait_for(lambda: beat._waiting)
    beat.end()
    for each in (waits, again):
        each.join(5)
        assert not each.is_alive()
    beat.wait(0.01)


def test_a_machine_that_is_always_late_lets_the_thread_rest_every_other_time(monkeypatch):
    sampler, rests = stacks.Sampler(0.05), []
    monkeypatch.setattr(stacks.time, "sleep", rests.append)
    for _ in range(6):
        sampler._rest(time.monotonic() - 1)
    assert len(rests) == 3


@pytest.fixture
def turns(monkeypatch):
    """Return the turns of this process, which the sampler and its lock use, as long as Python makes them."""
    usual_s = sys.getswitchinterval()
    yield threads.TURNS
    threads.TURNS.restore()
    sys.setswitchinterval(usual_s)


@pytest.mark.parametrize(
    ("late_s", "are_idle", "is_short"), [(0.003, True, True), (0.0, True, False), (0.003, False, False)]
)
def test_after_a_note_that_waited_for_the_lock_turns_are_short_as_the_next_is_due(
    monkeypatch, turns, late_s, are_idle, is_short
):
    sampler, now_s, lengths = stacks.Sampler(0.05), [100.0], []
    sampler._others.are_idle = are_idle

    def sleep(seconds):
        lengths.append((round(seconds, 4), sys.getswitchinterval()))
        now_s[0] += seconds + late_s

    monkeypatch.setattr(stacks, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: now_s[0]))
    usual_s = sys.getswitchinterval()
    sampler._sleep(100.05)
    sampler._sleep(now_s[0] + 0.05)
    early = [(0.043, usual_s), (pytest.approx(0.004), pytest.approx(threads.TURN_S))]
    assert lengths == [(0.05, usual_s), *(early if is_short else [(0.05, usual_s)])]
    turns.restore()
    assert sys.getswitchinterval() == usual_s


def test_turns_that_somebody_else_sets_stay_as_they_are(turns):
    turns.shorten()
    sys.setswitchinterval(0.02)
    turns.restore()
    assert sys.getswitchinterval() == pytest.approx(0.02)
    sys.setswitchinterval(threads.TURN_S)
    turns.shorten()
    turns.restore()
    assert sys.getswitchinterval() == pytest.approx(threads.TURN_S)


def test_a_fork_has_the_usual_turns(monkeypatch, turns):
    monkeypatch.setenv(stacks.OFF_VARIABLE, "0")
    usual_s = sys.getswitchinterval()
    turns.shorten()
    stacks._in_child()
    assert sys.getswitchinterval() == usual_s


def test_while_turns_are_short_a_lock_is_held_as_long_as_with_the_usual_ones(monkeypatch, turns):
    """A busy machine gives a thread no core every 0.1 ms."""
    counted = iter([0, 20])
    monkeypatch.setattr(threads.Lock, "_count", staticmethod(lambda: next(counted)))
    turns.shorten()
    assert threads.Lock().was_held(0.4)


@pytest.mark.parametrize(("cpu_s", "are_idle"), [(0.05, True), (0.2, False)])
def test_other_threads_are_idle_where_each_used_little_cpu(monkeypatch, cpu_s, are_idle):
    ends, used_s = threading.Event(), iter([1.0, 1.0 + cpu_s])
    other = threading.Thread(target=ends.wait)
    other.start()
    monkeypatch.setattr(threads, "_used_s", lambda clock: next(used_s))
    frames = {each: frame for each, frame in sys._current_frames().items() if each == other.ident}
    others = threads.OtherThreads(notes.Notes(0.05), threads.MainThread())
    for at_s in (10.0, 11.0):
        assert not others.are_idle  # not known
        others.note(frames, at_s)
        others.note_cpu(at_s)
    assert others.are_idle == are_idle
    ends.set()
    other.join()


def test_looks_at_the_cpu_are_told_with_the_block(read):
    block = notes.Notes(0.05)
    block.probed(9.0, ran=True)  # before anything was noted
    block.note(block.known.stack(here()), 10.0)
    for at_s, ran in ((10.25, True), (10.5, False), (10.75, True)):
        block.probed(at_s, ran=ran)
    first = block.block("main", 11.0)
    block.end(11.0)
    block.probed(11.25, ran=False)
    probes = read(first, block.block("main", 12.0)).probes
    assert probes.at_s.tolist() == pytest.approx([10.25, 10.5, 10.75, 11.25])
    assert probes.ran.tolist() == [True, False, True, False]
    block = notes.Notes(0.05)
    block.note(block.known.stack(here()), 10.0)
    assert read(block.block("worker 0", 11.0)).probes is None


def test_the_cpu_of_other_threads_is_told_where_one_used_much(read):
    block = notes.Notes(0.05)
    block.note(block.known.stack(here()), 10.0)
    assert read(block.block("main", 10.5)).busy_threads is None  # nobody has looked
    exporter = block.known.thread("exporter"), block.known.stack(sys._getframe())
    block.threads({0: exporter}, 10.0)
    block.cpu(11.0, 1.0, 0.9, {})
    assert len(read(block.block("main", 11.0)).busy_threads.start_s) == 0
    block.cpu(12.0, 1.0, 0.02, {0: 0.98})
    first = block.block("main", 12.0)
    block.end(12.0)
    block.cpu(13.0, 1.0, 0.03, {0: 0.97})
    process = read(first, block.block("main", 13.0))
    busy = process.busy_threads
    assert (busy.start_s.tolist(), busy.end_s.tolist()) == ([11.0, 12.0], [12.0, 13.0])
    assert (busy.cpu_s.tolist(), busy.main_cpu_s.tolist()) == ([0.98, 0.97], [0.02, 0.03])
    me = "test_the_cpu_of_other_threads_is_told_where_one_used_much"
    assert [process.stacks[number][0].function for number in busy.number] == [me, me]


@pytest.mark.parametrize(
    "look", [5, [1, 2, 3], [1, 0, 3, 0, 5], [1, 1000, 3, 0, -5], [1, 1000, "3", 0, 5], [1, 1000, 3, 0, 5, 1]]
)
def test_a_look_at_the_cpu_that_makes_no_sense_is_left_out(read, look):
    block = notes.Notes(0.05)
    block.note(block.known.stack(here()), 10.0)
    block._cpu = [look, [20, 1000, 3, 7, 500]]
    busy = read(block.block("main", 12.0)).busy_threads
    assert (busy.cpu_s.tolist(), busy.number.tolist()) == ([0.5], [0])  # of a thread that nobody has heard of


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's word")
def test_a_thread_that_runs_python_without_a_pause_is_told_from_one_that_waits():
    ends, block, main = threading.Event(), notes.Notes(0.05), threads.MainThread()
    others = threads.OtherThreads(block, main)

    def spins():
        while not ends.is_set():
            pass

    started = [threading.Thread(target=spins, name="spins"), threading.Thread(target=ends.wait, name="waits")]
    for each in started:
        each.start()
    block.note(block.known.stack(here()), 9.9)
    for at_s in (10.0, 10.3):
        others.note(sys._current_frames(), at_s)
        others.note_cpu(at_s)
        time.sleep(0.3)
    ends.set()
    for each in started:
        each.join()
    ((_, over_ms, main_ms, place, cpu_ms),) = block._cpu
    names = {place: name for place, (name, _) in block._threads_now.items()}
    assert names[place] == block.known.names.number("spins")
    assert over_ms == 300
    assert main_ms < 100 < 3 * cpu_ms


def test_a_block_of_a_worker_says_who_started_it(read):
    block = notes.Notes(0.2)
    block.note(0, 10.0)
    assert read(block.block("worker 0", 11.0, 4711)).parent == 4711
    assert read(block.block("main", 12.0)).parent is None


# A look begins where a note found the main thread and ends 2 ms later, or 50 where others have the cores. Stays are so
# long that few looks reach into the next one.
PROBED = """
import sys, time
STAY_S = 0.6
sys.path.insert(0, sys.argv[1])
from gpu_report_inside import stacks
stacks.start()
def waits():
    time.sleep(STAY_S)
def computes():
    until = time.monotonic() + STAY_S
    while time.monotonic() < until:
        sum(range(200))
sys.modules["torch"] = sys
end = time.monotonic() + 5
while time.monotonic() < end:
    waits()
    computes()
"""


def test_where_the_main_thread_waits_it_uses_no_cpu_and_where_it_computes_it_does(tmp_path):
    env = {**clean_environment(), "GPU_REPORT_RUN_FOLDER": str(tmp_path)}
    subprocess.run([sys.executable, "-c", PROBED, ON_PATH], env=env, check=True, timeout=60)
    (process,), _ = load_stacks(tmp_path / "stacks", Clock(), 1e9)
    ran = {"waits": [], "computes": []}
    for at_s, used in zip(process.probes.at_s, process.probes.ran, strict=True):
        stay = int(np.searchsorted(process.start_s, at_s + 1e-6, side="right")) - 1
        named = {frame.function for frame in process.stacks.get(int(process.number[stay]), ())}
        for name in named.intersection(ran):
            ran[name].append(bool(used))
    assert len(ran["waits"]) >= 3 <= len(ran["computes"])
    assert np.mean(ran["waits"]) < 0.2
    assert np.mean(ran["computes"]) > 0.6


# Each of these stays is shorter than Python's 5 ms, and ends where the lock is let go of.
SHORT_WORK = """
import sys, time
sys.path.insert(0, sys.argv[1])
from gpu_report_inside import stacks
stacks.start()
def computes():
    until = time.perf_counter() + 0.004
    while time.perf_counter() < until:
        pass
sys.modules["torch"] = sys
spent, end = 0.0, time.monotonic() + 8
while (begun := time.monotonic()) < end:
    computes()
    spent += time.monotonic() - begun
    time.sleep(0.003)
print(spent / 8)
"""


def test_code_of_a_few_milliseconds_is_noted_where_it_is_and_not_in_the_call_after_it(tmp_path):
    """Without short turns it was 0 % of the notes, on two busy cores a fifth of its share."""
    env = {**clean_environment(), "GPU_REPORT_RUN_FOLDER": str(tmp_path)}
    command = [sys.executable, "-c", SHORT_WORK, ON_PATH]
    share = float(subprocess.run(command, env=env, check=True, timeout=60, capture_output=True, text=True).stdout)
    (process,), _ = load_stacks(tmp_path / "stacks", Clock(), 1e9)
    mine = [n for n, stack in process.stacks.items() if any(frame.function == "computes" for frame in stack)]
    lasted = np.where(process.start_s >= process.start_s[0] + 2.5, process.end_s - process.start_s, 0.0)
    assert lasted[np.isin(process.number, mine)].sum() / lasted.sum() > 0.4 * share


def test_a_busy_machine_is_not_taken_for_a_lock(monkeypatch):
    counted = iter([0, 2, 22])
    monkeypatch.setattr(threads.Lock, "_count", staticmethod(lambda: next(counted)))
    lock = threads.Lock()
    assert not lock.was_held(0.4)  # it did not ask: something kept it from running at all
    assert lock.was_held(0.4)  # it asked 20 times: on a full machine every 20 ms instead of 5


def test_a_thread_notes_until_nobody_records_and_can_begin_again(tmp_path, monkeypatch):
    monkeypatch.setenv("GPU_REPORT_RUN_FOLDER", str(tmp_path / "one"))
    monkeypatch.setattr(stacks, "WRITE_EVERY_S", 0.1)
    monkeypatch.setattr(stacks, "EXTEND_EVERY_S", 0.1)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    before = threading.active_count()
    stacks.start()
    file = f"stacks/{os.getpid()}.jsonl"
    wait_for(lambda: (tmp_path / "one" / file).stat().st_size)
    monkeypatch.setenv("GPU_REPORT_RUN_FOLDER", str(tmp_path / "two"))
    wait_for(lambda: (tmp_path / "two" / file).stat().st_size)
    (process,), problems = load_stacks(tmp_path / "two" / "stacks", Clock(), 1e9)
    names = {frame.function for stack in process.stacks.values() for frame in stack}
    assert problems == ()
    assert "test_a_thread_notes_until_nobody_records_and_can_begin_again" in names
    monkeypatch.delenv("GPU_REPORT_RUN_FOLDER")  # its end
    wait_for(lambda: threading.active_count() <= before + 1)  # the writer's waits for ever, as a daemon
    assert stacks._STARTED.add()
    stacks._STARTED.end()


@pytest.mark.parametrize(
    ("process", "env", "expected"),
    [
        ({}, {}, "main"),
        ({}, {"RANK": "3", "WORLD_SIZE": "4"}, "rank 3"),
        ({}, {"RANK": "0", "WORLD_SIZE": "1"}, "main"),
        ({"module": "somebody"}, {"RANK": "3", "WORLD_SIZE": "4"}, None),  # what a rank has forked
        ({"module": process_role.SPAWNED_RANK, "args": ("f", 2, ())}, {}, "rank 2"),
        ({"module": process_role.SPAWNED_RANK, "args": ("f", 2, ())}, {"RANK": "6", "WORLD_SIZE": "8"}, "rank 6"),
        ({"module": "loader", "worker": 5}, {"RANK": "1", "WORLD_SIZE": "2"}, "worker 5"),
    ],
)
def test_what_a_process_is(monkeypatch, process, env, expected):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    child = SimpleNamespace(_target=SimpleNamespace(__module__=process.get("module")), _args=process.get("args", ()))
    info = SimpleNamespace(id=process["worker"]) if "worker" in process else None
    known = SimpleNamespace(parent_process=lambda: process.get("module"), current_process=lambda: child)
    monkeypatch.setitem(sys.modules, "multiprocessing.process", known)
    monkeypatch.setitem(sys.modules, "torch.utils.data._utils.worker", SimpleNamespace(_worker_info=info))
    monkeypatch.setitem(sys.modules, "torch.distributed", None)
    assert process_role.role() == expected


@pytest.mark.parametrize("fault", ["_current_frames", "getpid"])
def test_a_fault_of_ours_is_no_fault_of_the_training(monkeypatch, fault):
    def broken(*_):
        raise MemoryError

    monkeypatch.setattr(sys if fault == "_current_frames" else os, fault, broken)
    monkeypatch.setattr(stacks, "report", lambda *_: None)
    stacks._STARTED.end()
    stacks.start()
    stacks._in_child()


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv(stacks.OFF_VARIABLE, "0")
    monkeypatch.setattr(stacks, "Sampler", lambda *_: pytest.fail("noted all the same"))
    stacks.start()
    stacks._in_child()


@pytest.mark.parametrize(("does", "runnable"), [("zlib.compress(data, 9)", True), ("time.sleep(0.3)", False)])
@pytest.mark.parametrize("forks", ["0", "os.fork() and os.wait()"])
def test_a_main_thread_that_wants_a_core_is_told_from_one_that_sleeps(does, runnable, forks):
    code = f"""
import os, sys, threading, time, zlib
sys.path.insert(0, sys.argv[1])
if {forks}:
    sys.exit()
from gpu_report_inside.threads import MainThread
main, data, looks = MainThread(), bytes(range(256)) * 40_000, []
def look():
    for _ in range(10):
        time.sleep(0.01)
        looks.append(main.is_runnable())
thread = threading.Thread(target=look)
thread.start()
while thread.is_alive():
    {does}
print(sum(looks))
"""
    done = subprocess.run([sys.executable, "-c", code, str(ON_PATH)], capture_output=True, text=True, check=True)
    assert (int(done.stdout) >= 8) is runnable


def test_code_that_torch_compile_wrote_is_one_place_and_quickly_found():
    body = "".join(f"    x = {at} if look({at}) else {at}\n" for at in range(16_000))
    seen, took = notes.Dictionary(), []

    def look(at):
        if at % 1000 == 0:
            began_s = time.perf_counter()
            numbers.add(seen.stack(sys._getframe(1)))
            took.append(time.perf_counter() - began_s)
        return True

    numbers, names = set(), {"look": look}
    exec(compile(f"def call():\n{body}", "generated.py", "exec"), names)
    assert len(names["call"].__code__.co_linetable) > notes.LARGEST_TABLE
    names["call"]()
    assert len(numbers) == 1
    assert [frame[1:] for frame in seen.frames.new()[1:] if frame[2] == "call"] == [(1, "call")]
    # a look at its lines takes ten times as long: 0.5 ms here
    assert sorted(took)[len(took) // 2] < 0.2e-3


@pytest.mark.parametrize("step_s", [0.1, 0.15, 0.25, 0.47])
def test_steps_of_a_whole_number_of_notes_are_seen_everywhere(step_s):
    """A callback of a fifth of each step takes a fifth of the notes."""
    at_s = np.cumsum([stacks.PERIOD_S * (0.5 + stacks.later(number)) for number in range(4000)])
    assert np.diff(at_s).min() > stacks.PERIOD_S / 4
    assert np.mean(at_s % step_s < step_s / 5) == pytest.approx(0.2, abs=0.02)
