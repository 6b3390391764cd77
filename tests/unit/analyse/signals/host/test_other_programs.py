"""From looks at programs of others to the finding of a drop that names one, and to nothing where nothing was slow."""

import dataclasses

import numpy as np
import pandas as pd

from gpu_report.analyse import analyse
from gpu_report.model import OtherProgram
from tests.support.runs import make_run

END = 120
# Others are there from 60 to 80 s: two looks of them, and one before.
LOOKS = tuple(OtherProgram(a, b, "stress-ng", "bob", 4711, 40, 5000.0, 1.0) for a, b in [(62, 68), (68, 80)])
LOOKS = (OtherProgram(20, 26, "cron", "root", 7, 1, 110.0, None), *LOOKS)


def told(util, cpu_pct):
    """Return the findings of a training on 64 cores, and whose CPU is as is given while others are there."""
    t_s = np.arange(END, dtype=float)
    there = (t_s > 60) & (t_s <= 80)
    columns = {"main_cpu_pct": 100.0, "workers_cpu_pct": 600.0, "cpu_pressure_pct": 0.0, "cpu_pct": 15.0}
    host = pd.DataFrame({"t_s": t_s, **columns})
    host.loc[there, ["cpu_pct", "cpu_pressure_pct"]] = cpu_pct, 70.0
    run = make_run([0.0] * 5 + [util if seen else 92.0 for seen in there[5:]])
    recording = dataclasses.replace(run.recording, cores=64, cores_online=64)
    return analyse(dataclasses.replace(run, host=host, recording=recording, other_programs=LOOKS)).findings


def test_a_drop_names_the_program_that_took_the_cores():
    (drop,) = told(4.0, 98.0)
    assert drop.cause.explanation == "the program stress-ng of user bob (40 processes) used 50 of the 64 CPU cores"


def test_a_training_that_was_not_slowed_says_nothing_of_others():
    assert told(92.0, 98.0) == ()
