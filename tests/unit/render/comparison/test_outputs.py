"""A comparison for machines and for CI: valid, small, and with nothing alive that came from a run."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from support.compared import analysed, on_gpu, slower, with_findings, with_notes, with_settings
from support.json_schema import errors
from support.made_calls import latencies, model_calls, served, serving

from gpu_report.analyse.compare import compare, without_baseline
from gpu_report.analyse.compare.gate_syntax import default_gates, parse_gates
from gpu_report.analyse.compare.metrics import METRICS
from gpu_report.model import Cause, Finding, LineChange, Sentence, Verdict
from gpu_report.render.comparison.benchmark_services import bencher, github_benchmark
from gpu_report.render.comparison.comparison_json import build_comparison
from gpu_report.render.comparison.github import annotations
from gpu_report.render.comparison.junit import render_junit
from gpu_report.render.comparison.markdown import MOST_BYTES, render_comparison_markdown
from gpu_report.render.comparison.page import render_comparison_html
from gpu_report.render.comparison.rows import code_line_rows, finding_rows, label, to_do
from gpu_report.render.comparison.terminal import render_comparison_text

SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "compare.schema.json").read_text())
OWN_TAGS = {
    "h2",
    "h3",
    "p",
    "strong",
    "code",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "li",
    "details",
    "summary",
}
HOSTILE = (
    "</td><script>alert(1)</script> `code` | [link](http://evil.example) @everyone ![x](https://evil.example/x.png)"
    "\n::error::planted\n\x1b[31m\x00\ud800 **bold** & #1 www.evil.example"
)


def compared(name):
    gates = default_gates(baseline=True)
    made = {
        "failed": lambda: compare([analysed("n-fed")], analysed("n-starved"), gates),
        "passed": lambda: compare([analysed("m-healthy")], analysed("m-healthy"), gates),
        "not comparable": lambda: compare([on_gpu(analysed("m-healthy"), "NVIDIA L4")], analysed("m-healthy"), gates),
        "cut short": lambda: compare([analysed("s-healthy")], analysed("s-killed"), gates),
        "several": lambda: compare(
            [analysed(n) for n in ("s-cpu-taken", "s-loader-stall", "s-storage")], analysed("s-storage"), gates
        ),
        "in the band": lambda: compare(
            [slower(analysed("m-healthy"), factor) for factor in (1.0, 1.02, 1.09)],
            slower(analysed("m-healthy"), 1.1),
            gates,
        ),
        "no baseline": lambda: without_baseline(analysed("m-healthy"), gates, "there is no baseline yet"),
        "from outside": lambda: compare([analysed("yolo26m-detail")], analysed("yolo26m-stalls"), gates),
        "check": lambda: compare((), analysed("n-xid"), default_gates(baseline=False)),
        "nothing known": lambda: compare((), analysed("xid31"), default_gates(baseline=False)),
        "no gates": lambda: compare([analysed("m-healthy")], analysed("m-healthy")),
        "lines": with_lines,
        "hostile": hostile,
        "calls": calls,
        "calls alone": lambda: compare((), served(latencies(60, 1)), default_gates(baseline=False, of_calls=True)),
        "calls and a training": lambda: compare([served(latencies(60, 1))], analysed("m-healthy"), gates),
    }
    return made[name]()


def hostile():
    """A comparison of a regression with hostile text wherever a run can hold any."""
    bad = Finding("drop-1", "drop", "warning", 0, 1.0, 20.0, HOSTILE, cause=Cause(HOSTILE, 0.5, HOSTILE))
    run = with_findings(with_settings(slower(analysed("s-healthy"), 1.3), data=HOSTILE, optimizer=HOSTILE), bad)
    run = replace(run, run=replace(run.run, path=f"runs/{HOSTILE}"), verdict=Verdict((Sentence("work", HOSTILE),)))
    found = compare([analysed("s-healthy")], run, default_gates(baseline=True))
    return replace(found, code_lines=(LineChange("main", HOSTILE, f"/a/{HOSTILE}", 1, 2, 1.0, 2.0),))


def calls():
    """A comparison of calls that got slower, of two models: one has a hostile name and too few calls for all ends."""

    def run(mean_ms):
        few = model_calls(latencies(210, 3, mean_ms=2 * mean_ms), model=f"{HOSTILE}.pt", pid=101)
        return serving(model_calls(latencies(900, 1, mean_ms=mean_ms)), few)

    return compare([run(15.0)], run(18.0), default_gates(baseline=True, of_calls=True))


def with_lines():
    """A comparison in which seven lines changed: one is new, one gone, one moved, one waits for data."""
    lines = (
        LineChange("main", "log_images", "/home/me/callbacks.py", 41, 57, 0.2, 3.2),
        LineChange("workers", "load", "C:\\me\\data.py", None, 9, 0.0, 2.0),
        LineChange("main", "_do_train", "trainer.py", 400, 400, 0.1, 1.1, "data"),
        LineChange("main", "save", "callbacks.py", 70, None, 0.5, 0.0),
        *(LineChange("main", f"f{n}", "callbacks.py", n, n, 0.4, 0.1) for n in range(3)),
    )
    found = compare([analysed("s-healthy")], slower(analysed("s-healthy"), 1.3), default_gates(baseline=True))
    return replace(found, code_lines=lines)


KINDS = (
    "failed",
    "passed",
    "not comparable",
    "cut short",
    "several",
    "in the band",
    "no baseline",
    "from outside",
    "check",
    "nothing known",
    "no gates",
    "lines",
    "hostile",
    "calls",
    "calls alone",
    "calls and a training",
)


# --- JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_json_is_what_its_schema_says(kind):
    made = build_comparison(compared(kind))
    assert errors(json.loads(json.dumps(made, allow_nan=False)), SCHEMA) == []
    json.dumps(made, ensure_ascii=False).encode()  # no lone surrogate


def test_the_schema_would_notice_another_field_a_missing_one_and_a_wrong_one():
    made = build_comparison(compared("failed"))
    assert errors({**made, "extra": 1}, SCHEMA)
    assert errors({k: v for k, v in made.items() if k != "verdict"}, SCHEMA)
    assert errors({**made, "exit_code": 2}, SCHEMA)
    assert errors({**made, "metrics": [{**made["metrics"][0], "run": "fast"}]}, SCHEMA)


def test_the_json_says_what_the_exit_code_is():
    codes = {kind: build_comparison(compared(kind))["exit_code"] for kind in ("failed", "passed", "not comparable")}
    assert codes == {"failed": 1, "passed": 0, "not comparable": 3}


def test_the_json_of_calls_names_the_model_the_cause_and_how_many_calls_there_are():
    made = build_comparison(calls())
    assert made["cause"]["kind"] == "inference"
    assert made["run"]["calls"] == 1110
    p95 = [each for each in made["metrics"] if (each["metric"], each["statistic"]) == ("latency", "p95")]
    assert (p95[0]["model"], p95[0]["basis"], p95[0]["label"]) == ("yolo26n", "calls", "p95 latency (yolo26n)")
    labels = {each["label"] for each in made["metrics"]}
    assert {f"{part}, mean (yolo26n)" for part in ("Pre-processing", "Inference", "Post-processing")} <= labels
    assert p95[1]["interval"] is None or None in p95[1]["interval"].values()


def test_no_output_of_calls_speaks_of_epochs_or_training():
    found = compare([served(latencies(900, 1))], served(latencies(900, 2, mean_ms=20.0)), default_gates(baseline=True))
    found = replace(found, gates=())
    shown = (render_comparison_text(found), render_comparison_markdown(found), render_comparison_html(found))
    for text in shown:
        visible = re.sub(r"<(style|script)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert re.findall(r"\b(?:epochs?|training|trained)\b", re.sub(r"<[^>]+>", " ", visible), re.IGNORECASE) == []


# --- JUnit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_junit_is_well_formed_and_counts_its_cases(kind):
    comparison = compared(kind)
    suite = ET.fromstring(render_junit(comparison).encode()).find("testsuite")
    cases = suite.findall("testcase")
    assert sorted(case.get("name") for case in cases) == sorted(result.gate.text for result in comparison.gates)
    for name, tag in (("failures", "failure"), ("skipped", "skipped")):
        assert int(suite.get(name)) == sum(case.find(tag) is not None for case in cases)


def test_a_failed_gate_is_a_failure_and_a_warning_is_none():
    suite = ET.fromstring(render_junit(compared("failed"))).find("testsuite")
    failed = [case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None]
    assert failed == ["epoch_time:+5%", "data_wait_share:+5pp"]
    warned = next(case for case in suite.findall("testcase") if case.get("name") == "util:-10%")
    assert warned.find("system-out").text.startswith("warning: steady-state GPU utilisation")


def test_not_comparable_is_skipped_and_never_a_failure():
    suite = ET.fromstring(render_junit(compared("not comparable"))).find("testsuite")
    cases = suite.findall("testcase")
    assert all(case.find("skipped") is not None and case.find("failure") is None for case in cases)
    assert "GPU model" in cases[0].find("skipped").get("message")


def test_the_junit_output_names_the_lines_after_the_verdict():
    comparison = compared("lines")
    text = ET.fromstring(render_junit(comparison)).find("testsuite").findall("system-out")[-1].text
    assert text.splitlines()[0] == comparison.verdict
    assert text.splitlines()[1] == (
        "slower: Main process: log_images (callbacks.py:41 \u2192 57): idle GPU time per epoch 0.20 s \u2192 3.20 s"
    )


# --- lines of code ------------------------------------------------------------------------------------------------


def test_five_lines_are_shown_with_what_became_of_them():
    assert code_line_rows(compared("lines")) == [
        ("slower", "Main process: log_images (callbacks.py:41 \u2192 57)", "0.20 s", "3.20 s", "+3.00 s"),
        ("new", "Loader workers: load (data.py:9)", "none", "2.00 s", "+2.00 s"),
        (
            "slower",
            "Main process: _do_train (trainer.py:400), waiting for the data loader",
            "0.10 s",
            "1.10 s",
            "+1.00 s",
        ),
        ("gone", "Main process: save (callbacks.py:70)", "0.50 s", "none", "\u22120.50 s"),
        ("faster", "Main process: f0 (callbacks.py:0)", "0.40 s", "0.10 s", "\u22120.30 s"),
    ]
    assert code_line_rows(compared("failed")) == []


def test_the_json_has_all_of_them_and_null_is_not_none():
    lines = build_comparison(compared("lines"))["code_lines"]
    assert [line["status"] for line in lines] == ["slower", "new", "slower", "gone", "faster", "faster", "faster"]
    assert lines[0]["file"] == "/home/me/callbacks.py"
    assert lines[0]["change_gpu_s"] == pytest.approx(3.0)
    assert build_comparison(compared("failed"))["code_lines"] is None
    noted = with_notes(analysed("s-healthy"), 1.0)
    assert build_comparison(compare([noted], noted))["code_lines"] == []


@pytest.mark.parametrize("render", [render_comparison_text, render_comparison_markdown])
def test_terminal_and_markdown_have_a_table_of_lines_only_where_one_changed(render):
    title = "Lines of code, by idle GPU time per epoch"
    assert title in render(compared("lines"))
    assert "log_images" in render(compared("lines"))
    assert title not in render(compared("failed"))


def test_one_process_is_not_named_with_every_line():
    found = compared("lines")
    alone = replace(found, code_lines=found.code_lines[:1])
    assert code_line_rows(alone)[0][1] == "log_images (callbacks.py:41 \u2192 57)"


# --- Markdown -----------------------------------------------------------------------------------------------------


def rendered(comparison):
    """Return the Markdown as HTML, by a parser that knows tables, raw HTML and bare links, as GitHub does."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    return parser.render(render_comparison_markdown(comparison))


@pytest.mark.parametrize("kind", KINDS)
def test_the_markdown_is_small_and_its_tables_are_tables(kind):
    text = render_comparison_markdown(compared(kind))
    assert len(text.encode()) < MOST_BYTES
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1


def test_nothing_from_a_run_is_alive_in_the_markdown():
    comparison = compared("hostile")
    html = rendered(comparison)
    tags = set(re.findall(r"<(/?\w+)", html))
    assert {tag.removeprefix("/") for tag in tags} <= OWN_TAGS
    assert "alert(1)" in html  # it is there, as text
    assert "<a " not in html
    assert "<img" not in html
    text = render_comparison_markdown(comparison)
    outside_code = re.sub(r"`[^`\n]*`", "", text)
    assert "@everyone" not in outside_code
    assert "://evil" not in outside_code
    assert not re.search(r"www\.evil", outside_code)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", text)


def test_a_huge_comparison_still_fits():
    many = {f"argument_{n}": "x" * 200 for n in range(1000)}
    yolo = analysed("s-healthy").run.yolo_runs[0]
    before, after = (
        replace(
            analysed("s-healthy"),
            run=replace(analysed("s-healthy").run, yolo_runs=(replace(yolo, args={**yolo.args, **args}),)),
        )
        for args in (many, {name: value + "y" for name, value in many.items()})
    )
    findings = [
        Finding(f"drop-{n}", "drop", "warning", n, 0.0, 20.0, "x" * 500, cause=Cause(f"c{n}", 0.9, ""))
        for n in range(500)
    ]
    text = render_comparison_markdown(compare([before], with_findings(after, *findings), default_gates(baseline=True)))
    assert len(text.encode()) < MOST_BYTES
    assert "more" in text
    assert text.startswith("## GPU report: the gate")


# --- GitHub ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_ten_annotations_a_line_each(kind):
    made = annotations(compared(kind))
    assert len(made) <= 10
    assert all(re.fullmatch(r"::(error|warning|notice) title=[^:,\n]*::[^\n\r]*", line) for line in made)


def test_the_worst_annotation_comes_first():
    gates = parse_gates([f"epoch_time:{n}s" for n in range(1, 9)], [f"util:{n}%" for n in range(90, 99)])
    made = annotations(compare((), analysed("n-starved"), gates))
    assert len(made) == 10
    assert [line.split(" ")[0] for line in made] == ["::error"] * 8 + ["::warning"] * 2


def test_what_cannot_be_decided_is_one_error_and_not_one_a_gate():
    made = annotations(compared("not comparable"))
    assert len(made) == 1
    assert made[0].startswith("::error title=gpu-report cannot decide::GPU model")


def test_a_pass_annotates_nothing():
    assert annotations(compared("passed")) == []


def test_annotations_carry_no_control_and_no_reordering():
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "".join(annotations(compared("hostile"))))


def test_a_runs_text_cannot_give_commands():
    for text in (render_comparison_text(compared("hostile")), render_comparison_markdown(compared("hostile"))):
        assert not re.search(r"(?m)^\s*::|##\w*\[", text)


# --- terminal ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_terminal_gets_no_control(kind):
    text = render_comparison_text(compared(kind), width=100)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert max(map(len, text.splitlines())) <= 100


def test_a_finding_of_some_baselines_says_in_how_many_and_all_counts_agree():
    bad = Finding("drop-1", "drop", "warning", 0, 1.0, 13.0, "", cause=Cause("input-stalled", 0.9, ""))
    with_one, without = (with_findings(analysed("s-healthy"), *found) for found in ((bad,), ()))
    comparison = compare([without, with_one, without], with_one, ())
    ((status, _, before, now),) = finding_rows(comparison)
    assert (status, before, now) == ("still there", "in 1 of 3: 1, 12.0 s", "1, 12.0 s")
    (row,) = build_comparison(comparison)["findings"]
    assert (row["baseline_counts"], row["baselines_with"], row["baseline_count"]) == ([0, 1, 0], 1, 0)
    ((_, _, alone, _),) = finding_rows(compare([with_one], with_one, ()))
    assert alone == "1, 12.0 s"


# --- histories --------------------------------------------------------------------------------------------------------


def test_bencher_has_a_measure_a_metric_with_its_bounds():
    ((name, measures),) = bencher(compared("failed")).items()
    assert name == "NVIDIA-H200-x1-yolo26n-640px-4000-images"
    time = measures["epoch-time"]
    assert time["lower_value"] < time["value"] < time["upper_value"]
    assert set(measures["memory-peak"]) == {"value"}


def test_the_rows_of_github_action_benchmark_are_told_apart_by_direction():
    smaller, bigger = (github_benchmark(compared("failed"), bigger_is_better=b) for b in (False, True))
    assert {row["name"].split(": ")[1] for row in bigger} == {"Images per second", "Steady utilisation"}
    assert "Training per epoch" in {row["name"].split(": ")[1] for row in smaller}
    assert all({"name", "unit", "value"} <= set(row) and isinstance(row["value"], float) for row in smaller + bigger)


def test_a_metric_without_a_direction_is_in_neither_file_of_github_action_benchmark():
    comparison = compared("failed")
    rows = [row for bigger in (False, True) for row in github_benchmark(comparison, bigger_is_better=bigger)]
    undirected = {name for name, metric in METRICS.items() if metric.better is None} - {"util"}
    known = {metric.metric for metric in comparison.metrics if metric.run is not None}
    assert undirected & known  # there is something to leave out
    assert len(rows) == len(known - undirected)
    assert not {label(m) for m in comparison.metrics if m.metric in undirected} & {
        row["name"].split(": ")[1] for row in rows
    }


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("n-starved", "What to do: Set `workers=11` (now 2): epochs drop"),
        ("n-oom-killed", "What to do: Find what the main process keeps from batch to batch"),
        ("s-healthy", ""),  # nothing failed
    ],
)
def test_a_check_says_what_to_do_first(name, what):
    checked = compare((), analysed(name), default_gates(baseline=False))
    assert to_do(checked).startswith(what) if what else to_do(checked) == ""
    assert ("What to do" in render_comparison_markdown(checked)) == bool(what)
    assert render_comparison_text(checked, width=200).count("OOM killer ended the training") == (name == "n-oom-killed")


def test_a_comparison_says_what_changed_and_not_what_to_do():
    assert to_do(compared("failed")) == ""
