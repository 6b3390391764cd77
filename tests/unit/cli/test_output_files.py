import os

from gpu_report.cli.output_files import write
from gpu_report.run_folder import WRITTEN_AT_ONCE


def test_texts_are_written_one_behind_the_other(tmp_path):
    texts = "a→", "b" * (WRITTEN_AT_ONCE + 1), "", "c"
    write(tmp_path / "report.html", *texts)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "".join(texts)
    (there,) = tmp_path.iterdir()
    assert there.name == "report.html"


def test_texts_go_through_a_pipe_one_behind_the_other(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # a writer would wait for it
    write(pipe, "a→", "b")
    assert os.read(reader, 100) == "a→b".encode()
    os.close(reader)
