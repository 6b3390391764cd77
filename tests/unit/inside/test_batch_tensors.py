"""How many tensors a batch has: looked into once an epoch, by a method that is the class's own again afterwards."""

import json
import pickle
import sys
import weakref
from types import SimpleNamespace as Some

import pytest

from gpu_report.inside.on_path.gpu_report_inside import batch_tensors, lines
from gpu_report.inside.on_path.gpu_report_inside.batch_tensors import BatchTensors, tensors_in
from gpu_report.inside.on_path.gpu_report_inside.lines import RUN_FOLDER_VARIABLE


class Tensor:
    def numel(self):
        return 10

    def element_size(self):
        return 4


class DataSet:
    def __getitem__(self, index):
        return index


class Derived(DataSet):
    pass


class Trainer:
    train_loader = Some(dataset=Derived())

    def preprocess_batch(self, batch):
        return batch


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(lines, "_reported", set())
    monkeypatch.setitem(sys.modules, "torch", Some(Tensor=Tensor))
    return tmp_path


def written(folder):
    lines.LINES.drain()
    return [json.loads(line) for path in (folder / "inside").glob("*") for line in path.read_text().splitlines()]


def batch_of(people):
    rowers = [[{"limbs": Tensor(), "lean": Tensor()} for _ in range(people)], ()]
    return {"img": Tensor(), "im_file": ("a.jpg", "b.jpg"), "rowers": rowers}


def test_tensors_are_counted_wherever_they_lie():
    assert tensors_in(batch_of(3)) == (7, 280)
    assert tensors_in(Tensor()) == (1, 40)
    assert tensors_in({"img": 3, "names": ["a"]}) == (0, 0)


def test_a_huge_batch_or_one_that_holds_itself_is_no_long_look():
    held = [Tensor()]
    held.append(held)
    assert tensors_in(held)[0] <= batch_tensors.MOST_LOOKED_AT
    assert tensors_in([Tensor() for _ in range(100_000)])[0] == batch_tensors.MOST_LOOKED_AT


def test_no_code_of_the_users_is_called():
    class Lazy(dict):
        def values(self):
            pytest.fail("it reads files")

    class Lines(list):
        def __iter__(self):
            pytest.fail("it reads files")

    assert tensors_in(Lazy(a=Lines([Tensor()])))[0] == 1


def test_a_method_that_is_an_object_of_the_users_is_called_as_it_is():
    class Doubled:
        def __call__(self, batch):
            return [batch, batch]

    class Own(Trainer):
        preprocess_batch = Doubled()

    trainer = Own()
    BatchTensors().look(trainer)
    assert trainer.preprocess_batch(1) == [1, 1]


def test_a_key_that_is_no_text_is_not_made_one(folder):
    class Key:
        def __str__(self):
            return str(pytest.fail("it reads files"))

    trainer = Trainer()
    BatchTensors().look(trainer)
    trainer.preprocess_batch({Key(): [Tensor() for _ in range(9)], "img": Tensor()})
    (said,) = [line for line in written(folder) if line["kind"] == "settings"]
    assert (said["batch_tensors"], said["batch_tensors_key"]) == (10, None)


def test_one_batch_is_looked_into_and_what_it_has_is_said_once(folder):
    trainer, looks = Trainer(), BatchTensors()
    for people in (100, 100, 130, 3):
        looks.look(trainer)
        batch = batch_of(people)
        assert trainer.preprocess_batch(batch) is batch
        assert vars(trainer) == {}
    said = [
        (line["batch_tensors"], line["batch_tensors_key"]) for line in written(folder) if line["kind"] == "settings"
    ]
    assert said == [(201, "rowers"), (7, "rowers")]
    (place,) = [line for line in written(folder) if line["kind"] == "set_in"]
    assert (place["name"], place["file"]) == ("batch_tensors", __file__)
    assert place["line"] == DataSet.__getitem__.__code__.co_firstlineno


def test_a_batch_without_tensors_is_nothing_to_say(folder):
    trainer, looks = Trainer(), BatchTensors()
    for _ in range(3):
        looks.look(trainer)
        trainer.preprocess_batch({"img": 3})
    assert not (folder / "inside").exists()


def test_a_batch_of_another_kind_and_a_method_of_the_users_are_left_alone(folder):
    trainer, looks = Trainer(), BatchTensors()
    looks.look(trainer)
    assert trainer.preprocess_batch(batch=[Tensor(), Tensor()])
    trainer.preprocess_batch = mine = Some()
    looks.look(trainer)
    looks.look(None)
    assert trainer.preprocess_batch is mine
    assert [(line["batch_tensors"], line["batch_tensors_key"]) for line in written(folder)] == [(2, None)]


def test_what_fails_in_the_look_is_not_felt(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    trainer = Trainer()
    BatchTensors().look(trainer)
    assert trainer.preprocess_batch(3) == 3
    assert [line["kind"] for line in written(folder)] == ["error"]


def test_a_trainer_that_waits_for_its_look_is_pickled_and_freed():
    trainer = Trainer()
    BatchTensors().look(trainer)
    assert pickle.loads(pickle.dumps(trainer)).preprocess_batch(3) == 3
    gone = weakref.ref(trainer)
    del trainer
    assert gone() is None
