"""What holds up a training all the time, beside what happens in it at moments."""

from support.runs import make_run

from gpu_report.analyse import analyse, causes


def test_it_is_worked_out_once_however_many_drops_have_no_cause(monkeypatch):
    looked_at = []
    explain = causes.explain
    monkeypatch.setattr(causes, "explain", lambda signals, **how: looked_at.append(signals) or explain(signals, **how))
    lengths = [60, 95, 71, 130, 84, 66, 110, 75]  # regular ones would be validations
    util = [0.0] * 5 + [pct for seconds in lengths for pct in (*[95.0] * seconds, *[2.0] * 15)] + [95.0] * 60
    (found,) = [each for each in analyse(make_run(util)).findings if each.rule == "drop"]
    assert (len(found.each), found.cause.name) == (len(lengths), "unexplained")
    assert [each.is_steady for each in looked_at] == [True]
