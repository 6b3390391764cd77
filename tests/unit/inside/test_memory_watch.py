"""What holds the tensors by which memory grew: found, named, and never a cache that was there before."""

import contextlib
import ctypes
import functools
import gc
import itertools
import sys
import time
import weakref
from types import SimpleNamespace as Some

import pytest

from gpu_report.inside.on_path.gpu_report_inside.memory import holders
from gpu_report.inside.on_path.gpu_report_inside.memory import watch as memory_watch

MIB = 2**20
SOON_S = 60.0  # a budget that no look needs
ADDRESSES = itertools.count(1)


class Tensor:
    """As much of a tensor as is looked at."""

    def __init__(self, mib=10, *, cuda=True, leaf=True, node=None):
        self.is_cuda, self.is_leaf, self.grad_fn = cuda, leaf, node
        self.storage = Some(data_ptr=functools.partial(int, next(ADDRESSES)), nbytes=functools.partial(int, mib * MIB))

    def untyped_storage(self):
        return self.storage


class Parameter(Tensor):
    """A parameter of a model."""


class AddBackward0:
    def __init__(self, before):
        self.next_functions = ((before, 0), (None, 0))


def new_trainer():
    class Trainer:
        seen = []  # noqa: RUF012 - the fault that is looked for

        def __init__(self):
            self.history = {"images": []}
            self.total = None

        def keep(self, image):
            self.seen.append(image)

        def remember(self, image):
            self.history["images"].append((image, 1))

        def add(self, image):
            self.total = image

    Trainer.__qualname__ = "Trainer"
    return Trainer


Trainer = new_trainer()
KEPT = []


def keep_globally(image):
    KEPT.append(image)


def keep_by_default(image, kept=[]):  # noqa: B006 - the fault that is looked for
    kept.append(image)


def keeper():
    held = []

    def keep(image):
        held.append(image)

    return keep


@pytest.fixture(autouse=True)
def _torch(monkeypatch, request):
    """Let tensors be those above, and have a look walk through all objects of pytest only where a name is tested."""
    plain = Some(DisableTorchFunction=contextlib.nullcontext)
    monkeypatch.setitem(sys.modules, "torch", Some(Tensor=Tensor, nn=Some(Parameter=Parameter), _C=plain))
    if "make_keep" not in request.fixturenames:
        gc.freeze()
        monkeypatch.setitem(globals(), "Trainer", new_trainer())
    yield
    gc.unfreeze()
    Trainer.seen.clear()
    KEPT.clear()
    keep_by_default.__defaults__[0].clear()


def known():
    return holders.look(lambda _: set(), 0.0)[0]


def found_after(keep, *, make=Tensor, budget_s=SOON_S):
    before = known()
    for _ in range(12):
        keep(make())
    return holders.look(lambda ids: ids - before, time.thread_time() + budget_s)[1]


@pytest.mark.parametrize(
    ("make_keep", "name", "place", "function"),
    [
        (lambda: Trainer().keep, "Trainer.seen", "class", "keep"),
        (lambda: Trainer().remember, "Trainer.history", "instance", "remember"),
        (lambda: keep_globally, "test_memory_watch.KEPT", "global", "keep_globally"),
        (lambda: keep_by_default, "keep_by_default.kept", "argument", "keep_by_default"),
        (keeper, "keeper.keep.held", "closure", "keep"),
    ],
)
def test_what_holds_new_tensors_is_named_with_the_line_that_adds_to_it(make_keep, name, place, function):
    keep = make_keep()
    found = found_after(keep)
    assert (found["name"], found["place"], found["function"]) == (name, place, function)
    with open(__file__, encoding="utf-8") as file:  # noqa: PTH123 - a line of this very file
        assert ".append(" in file.readlines()[found["line"] - 1]
    assert (found["new_tensors"], found["new_mib"]) == (12, 120.0)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="a look changes what locals() returned")
def test_a_local_list_is_named_and_its_function_keeps_nothing_for_us():
    mine = []
    found = found_after(mine.append)
    assert (found["name"].rpartition(".")[2], found["place"]) == ("mine", "local")
    mine.clear()
    assert len(known()) == 0


def test_losses_with_their_graphs_are_named_although_they_have_no_bytes():
    trainer = Trainer()
    found = found_after(trainer.keep, make=lambda: Tensor(0, leaf=False))
    assert (found["name"], found["with_graph"]) == ("Trainer.seen", 12)


def test_losses_are_named_although_their_graphs_hold_pictures_of_many_bytes():
    """A graph lies in C++, where no reference is seen."""
    trainer, pictures = Trainer(), []

    def loss():
        picture = Tensor(75)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(picture))
        pictures.append(weakref.ref(picture))
        return Tensor(0, leaf=False)

    found = found_after(trainer.keep, make=loss)
    for picture in pictures:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(picture()))
    assert (found["name"], found["with_graph"]) == ("Trainer.seen", 12)


class Other:
    """Has an attribute of the same name, and fills that one."""

    def __init__(self):
        self.pictures = []

    def note(self, image):
        self.pictures.append(image)


class Album:
    def __init__(self):
        self.pictures = []


def test_a_method_of_another_class_is_not_said_to_fill_it():
    album = Album()
    found = found_after(vars(album)["pictures"].append)  # by what nobody finds by its name
    assert (found["name"], found["line"]) == ("Album.pictures", None)


def test_maps_that_each_epoch_makes_anew_are_not_blamed_for_what_is_kept():
    trainer, maps = Trainer(), []
    before = known()
    for _ in range(12):
        trainer.keep(Tensor(10))
        maps.append(Tensor(0, leaf=False))
    found = holders.look(lambda ids: ids - before, time.thread_time() + SOON_S, 50.0)[1]
    assert found["name"] == "Trainer.seen"
    assert len(maps) == 12


def test_no_walk_through_all_objects_begins_once_the_time_is_over(monkeypatch):
    spent, walks = Some(s=0.0), []
    monkeypatch.setattr(time, "thread_time", lambda: spent.s)
    walk = gc.get_referrers

    def slow(*objects):
        spent.s += 1.0
        walks.append(len(objects))
        return walk(*objects)

    monkeypatch.setattr(gc, "get_referrers", slow)
    found_after(Trainer().keep, budget_s=2.5)
    assert len(walks) <= 3


@pytest.mark.parametrize("way", ["get_objects", "get_referrers"])
def test_no_walk_begins_that_would_end_after_the_time(monkeypatch, way):
    """Each through all objects takes a second; of the graphs of losses they are looked through once more."""
    spent, walks = Some(s=0.0), {name: getattr(gc, name) for name in ("get_objects", "get_referrers")}

    def slow(name):
        def walk(*objects):
            spent.s += 1.0
            return walks[name](*objects)

        return walk

    before = known()
    monkeypatch.setattr(time, "thread_time", lambda: spent.s)
    monkeypatch.setattr(gc, "get_objects", slow("get_objects"))
    monkeypatch.setattr(gc, way, slow(way))
    trainer = Trainer()
    for _ in range(12):
        trainer.keep(Tensor(0, leaf=False))
    holders.look(lambda ids: ids - before, 1.9 if way == "get_objects" else 2.9)
    assert 1.0 <= spent.s <= (1.9 if way == "get_objects" else 2.9)


def test_a_process_with_very_many_objects_is_not_looked_into(watched, monkeypatch):
    watch, written, counter = watched
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: memory_watch.MOST_BLOCKS + 1)
    trainer = Trainer()
    for epoch in range(1, 6):
        for _ in range(4):
            trainer.keep(Tensor(50))
        watch.epoch_ends(epoch)
        counter.mib += 200
    assert written == []


def test_a_sum_of_losses_is_named_by_its_chain_of_additions():
    trainer, node = Trainer(), None
    for _ in range(holders.SUMMED):
        node = AddBackward0(node)
    found = found_after(trainer.add, make=lambda: Tensor(0, leaf=False, node=node))
    assert found["name"] == "Trainer.total"


def test_tensors_in_host_memory_and_no_time_name_nothing():
    assert found_after(Trainer().keep, make=lambda: Tensor(cuda=False)) == {}
    assert found_after(Trainer().keep, budget_s=-1.0) == {}


@pytest.fixture
def watched(monkeypatch):
    """Return a watch, what it wrote, and the counter that it compares."""
    written, counter = [], Some(mib=1000.0)
    monkeypatch.setattr(memory_watch.LINES, "write", lambda kind, fields: written.append((kind, fields)))
    monkeypatch.setattr(memory_watch, "allocated_mib", lambda: counter.mib)
    monkeypatch.setattr(memory_watch, "LONGEST_LOOK_S", SOON_S)
    return memory_watch.MemoryWatch(), written, counter


def test_a_cache_that_was_there_is_not_named_beside_what_grows(watched):
    watch, written, counter = watched
    cache = [Tensor(1000) for _ in range(20)]
    trainer = Trainer()
    for epoch in range(1, 7):
        for _ in range(4):
            trainer.keep(Tensor(50))
        watch.epoch_ends(epoch)
        counter.mib += 200
    assert [fields["look"] for _, fields in written] == [2, 3]  # and no fourth one
    assert {fields["name"] for _, fields in written} == {"Trainer.seen"}
    assert written[0][1]["grown_mib"] == 200
    assert len(cache) == 20


def test_losses_are_named_although_the_last_batch_has_more_bytes(watched):
    watch, written, counter = watched
    trainer = Trainer()
    for epoch in range(1, 4):
        last_batch = {name: Tensor(20) for name in ("img", "masks", "cls")}
        for _ in range(30):
            trainer.keep(Tensor(0, leaf=False))
        watch.epoch_ends(epoch)
        counter.mib += 2000
    assert [fields["name"] for _, fields in written] == ["Trainer.seen"]
    assert len(last_batch) == 3


def test_what_grows_within_epochs_is_compared_from_look_to_look(watched, monkeypatch):
    """A look right after another would find one batch's: too few to be a list of losses."""
    watch, written, counter = watched
    monkeypatch.setattr(memory_watch, "allowed_mib", lambda: 80_000.0)
    trainer = Trainer()
    for epoch in range(1, 5):
        for batch in range(25):
            trainer.keep(Tensor(0, leaf=False))
            counter.mib += 150
            if batch == 1:  # it is asked for now and then
                watch.within_epoch(epoch)
        watch.epoch_ends(epoch)
    assert [(fields["look"], fields["name"]) for _, fields in written][:1] == [(2, "Trainer.seen")]


def test_where_memory_ran_out_what_no_look_had_the_time_to_name_is_looked_for_again(watched, monkeypatch):
    watch, written, counter = watched
    monkeypatch.setattr(memory_watch, "LONGEST_LOOK_S", -1.0)
    trainer = Trainer()
    watch.ran_out(1)  # nothing has grown
    for epoch in range(1, 6):
        for _ in range(4):
            trainer.keep(Tensor(50))
        watch.epoch_ends(epoch)
        counter.mib += 200
    assert not any("name" in fields for _, fields in written)
    monkeypatch.setattr(memory_watch, "LONGEST_LOOK_S", SOON_S)
    watch.ran_out(6)
    watch.ran_out(6)
    assert [fields["name"] for _, fields in written if "name" in fields] == ["Trainer.seen"]


@pytest.mark.parametrize(("fraction", "allowed_gib"), [(None, 100.0), (0.25, 25.0), (1.0, 100.0)])
def test_growth_is_held_against_what_the_process_may_have(monkeypatch, fraction, allowed_gib):
    """A process that may use 36 of 140 GiB was full before its bank of pictures was looked for twice (2026-11-28)."""
    card = Some(total_memory=100 * 2**30)
    cuda = Some(is_initialized=lambda: True, current_device=lambda: 0, get_device_properties=lambda _: card)
    if fraction is not None:
        cuda.get_per_process_memory_fraction = lambda _: fraction
    monkeypatch.setattr(sys.modules["torch"], "cuda", cuda, raising=False)
    assert memory_watch.allowed_mib() == allowed_gib * 1024


def test_memory_that_stays_is_never_looked_into(watched, monkeypatch):
    watch, written, counter = watched
    monkeypatch.setattr(holders, "look", lambda *_: pytest.fail("looked"))
    for epoch, mib in enumerate([1000, 1100, 1050, 1120, 900, 1000]):
        counter.mib = mib
        watch.epoch_ends(epoch)
    assert written == []


def test_an_error_of_ours_is_reported_and_not_raised(watched, monkeypatch):
    watch, written, counter = watched
    monkeypatch.setattr(holders, "look", lambda *_: 1 / 0)
    watch.epoch_ends(1)
    counter.mib = 2000.0
    watch.epoch_ends(2)
    assert [kind for kind, _ in written] == ["error"]
