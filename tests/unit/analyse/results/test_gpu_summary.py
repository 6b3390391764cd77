"""The statistics of a GPU are the same, whoever works them out and when."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident

from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.analyse.results import gpu_summary

RUN = make_run([90.0, 95.0, 0.0, 97.0] * 10, quantities={"power_w": [500, 510, 90, 505] * 10})


def test_statistics_that_were_begun_meanwhile_are_not_worked_out_when_asked_for(monkeypatch):
    expected, threads = dict(analyse(RUN).gpus[0].quantities), set()
    stats = gpu_summary.weighted_stats
    monkeypatch.setattr(gpu_summary, "weighted_stats", lambda *asked: threads.add(get_ident()) or stats(*asked))
    with ThreadPoolExecutor(1) as meanwhile:
        analysis = analyse(RUN, meanwhile=meanwhile)
    assert dict(analysis.gpus[0].quantities) == expected
    assert threads
    assert get_ident() not in threads


def test_statistics_that_were_not_begun_in_time_are_worked_out_when_asked_for():
    free = Event()
    with ThreadPoolExecutor(1) as meanwhile:
        meanwhile.submit(free.wait)
        found = dict(analyse(RUN, meanwhile=meanwhile).gpus[0].quantities)
        free.set()
    assert found == dict(analyse(RUN).gpus[0].quantities)
    assert found["power_w"].max == 510
