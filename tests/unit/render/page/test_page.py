import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser
from types import ModuleType

import numpy as np
import pytest
from jinja2 import Environment, meta
from support.packed import Reader
from support.samples import analysis_of

from gpu_report.model import Advice, Analysis, KernelEvent, KernelLog, Sentence, Verdict
from gpu_report.render import render_html
from gpu_report.render.page.page import PageParts
from gpu_report.render.page.script_data import chart_data, to_json
from gpu_report.render.page.sections.findings import nothing_found
from gpu_report.render.page.views.report import ReportView
from gpu_report.template_files import PAGE_TEMPLATE, find_templates


class Elements(HTMLParser):
    """Every element with its attributes, the text between, and the raw text of script elements."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def html(analysis: Analysis) -> str:
    return render_html(analysis)


@pytest.fixture(scope="module")
def elements(html: str) -> Elements:
    return Elements(html)


def embedded(html: str, name: str) -> str:
    return re.search(rf'<script type="[a-z/]+" id="{name}">(.*?)</script>', html, re.DOTALL).group(1)


def test_the_template_is_given_what_it_asks_for_and_nothing_else(analysis: Analysis) -> None:
    templates = find_templates()
    environment = Environment()
    names, used = set(), ""
    for path in [templates / PAGE_TEMPLATE, *(templates / "partials").glob("*.j2")]:
        source = path.read_text()
        names |= meta.find_undeclared_variables(environment.parse(source))
        used += source
    assert names == {"report", "page"}
    assert set(re.findall(r"\breport\.(\w+)", used)) == {field.name for field in fields(ReportView)}
    assert set(re.findall(r"\bpage\.(\w+)", used)) == {field.name for field in fields(PageParts)}


def test_the_same_analysis_gives_the_same_page(analysis: Analysis, html: str) -> None:
    assert render_html(analysis) == html


def test_text_from_outside_is_text(html: str, elements: Elements, builder: ModuleType) -> None:
    kinds = [(tag, attributes.get("id")) for tag, attributes in elements.found if tag in ("script", "img", "iframe")]
    expected = [("script", name) for name in ("report-data", "report-first", "chart-library", None, "report-columns")]
    assert kinds == expected
    assert not [name for _, attributes in elements.found for name in attributes if name.startswith("on")]
    assert "".join(elements.text).count(builder.HOSTILE) >= 8


def test_no_address_outside_the_page_is_named(elements: Elements) -> None:
    addresses = [value for _, a in elements.found for name, value in a.items() if name in ("src", "href", "action")]
    assert all(address.startswith(("#", "data:image/svg+xml,")) for address in addresses)


def test_no_style_attribute_stands_in_the_page_since_the_policy_would_drop_it(elements: Elements) -> None:
    assert not [tag for tag, attributes in elements.found if "style" in attributes]


def test_every_anchor_is_there_once_and_every_link_within_the_page_finds_one(elements: Elements) -> None:
    anchors = [a["id"] for _, a in elements.found if "id" in a]
    assert len(anchors) == len(set(anchors))
    targets = {a["href"][1:] for a in elements.all("a") if not a["href"].startswith("#t=")}
    assert targets <= set(anchors)
    assert {"drop-1", "drop-2", "drop-3", "drop-4", "memory-growth-1"} <= set(anchors)


def test_findings_stand_in_their_order_and_expected_ones_are_folded(html: str) -> None:
    ids = re.findall(r'<article class="finding[^"]*" id="([^"]+)"', html)
    assert ids == ["drop-2", "drop-1", "drop-3", "memory-growth-1", "drop-4"]
    assert html.index('<details class="expected">') < html.index('id="drop-4"')


def test_a_missing_value_reads_not_available(elements: Elements) -> None:
    row = next(i for i, (tag, a) in enumerate(elements.found) if a.get("id") == "epoch-1-1-10")
    assert elements.found[row][0] == "tr"
    assert "n/a" in elements.text


@pytest.mark.parametrize("status", ["restricted", "unavailable"])
def test_a_log_that_was_not_read_is_unknown_and_never_free_of_errors(builder: ModuleType, status: str) -> None:
    quiet = builder.build_quiet_analysis()
    log = KernelLog(status, reason="no permission", advice="sudo sysctl kernel.dmesg_restrict=0")
    html = render_html(replace(quiet, run=replace(quiet.run, kernel=log)))
    assert "Unknown: the kernel log could not be read (no permission)" in html
    assert "sudo sysctl kernel.dmesg_restrict=0" in html
    assert not re.search(r"[Nn]o (errors|event)", html)


def test_events_are_shown_even_where_the_log_was_not_read(analysis: Analysis) -> None:
    run = replace(analysis.run, kernel=replace(analysis.run.kernel, status="restricted"))
    assert "NVRM: Xid (PCI:0000:00:07): 31" in render_html(replace(analysis, run=run))


def test_code_in_what_a_kernel_line_asks_for_is_shown_as_code(analysis: Analysis) -> None:
    event = KernelEvent(9.0, "nfs", "warning", "nfs: x", "it does not answer", "Use `cache`.")
    html = render_html(replace(analysis, run=replace(analysis.run, kernel=KernelLog("read", events=(event,)))))
    assert "<em>Use <code>cache</code>.</em>" in html


def test_only_what_helps_can_be_copied(analysis: Analysis) -> None:
    advice = (Advice("Find who did `kill -STOP`"), Advice("Look: `nvidia-smi -q`", "batch", "8", "16"))
    html = render_html(replace(analysis, findings=(replace(analysis.findings[0], advice=advice),)))
    assert "<code>kill -STOP</code>" in html
    copied = set(re.findall('data-copy="([^"]*)"', html))
    assert copied == {"nvidia-smi -q", "batch=16"}


def test_a_run_without_findings_says_so(builder: ModuleType) -> None:
    assert "No unexpected drop: GPU utilisation never fell by more than 50 %" in render_html(
        builder.build_quiet_analysis()
    )


def test_a_program_without_epochs_has_no_end_of_them(builder: ModuleType, analysis: Analysis) -> None:
    quiet = builder.build_quiet_analysis()
    assert "except" not in nothing_found(replace(quiet, epochs=()))
    assert "except at the end of epochs" in nothing_found(replace(quiet, epochs=analysis.epochs))


def test_a_run_without_samples_gives_a_page(builder: ModuleType) -> None:
    html = render_html(builder.build_empty_analysis())
    assert "There are no samples to draw." in html
    assert 'id="chart"' not in html


def test_the_embedded_data_is_json_without_nan_or_markup(html: str, analysis: Analysis) -> None:
    text = embedded(html, "report-data")
    assert not set("<>&") & set(text)
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [gpu["index"] for gpu in data["gpus"]] == [0, 1]
    assert data["gpus"][0]["columns"][0] | {"name": "t_s", "count": 584} == data["gpus"][0]["columns"][0]


def test_packed_columns_lie_one_behind_the_other_each_to_be_read_by_itself(analysis: Analysis) -> None:
    data, *texts = chart_data(analysis)
    gpus = [column for gpu in data["gpus"] for part in (gpu["columns"], *gpu["rings"].values()) for column in part]
    tables = [column for table in data["tables"].values() for column in table]
    columns = [part for column in (*gpus, *data["host"], *tables) for part in (column, column.get("rows")) if part]
    end = 0
    for column in sorted(columns, key=lambda each: each["offset"]):
        assert column["offset"] == end
        end += column["length"]
    assert end == sum(map(len, texts))


def test_the_drivers_readings_are_packed_on_their_own_time_axes(builder: ModuleType) -> None:
    analysis = builder.build_detailed_analysis()
    data, *_ = chart_data(analysis)
    rings = data["gpus"][0]["rings"]
    counts = {name: [column["count"] for column in packed] for name, packed in rings.items()}
    assert counts == {name: [analysis.run.ring[name].count()] * 2 for name in ("gpu_util_pct", "power_w")}
    assert [[column["name"] for column in packed] for packed in rings.values()] == [
        ["t_s", "gpu_util_pct"],
        ["t_s", "power_w"],
    ]
    assert data["gpus"][1]["rings"] == {}


def test_a_line_that_several_charts_have_stands_once_and_keeps_its_width_where_it_is_used() -> None:
    html = render_html(analysis_of("m-ddp-stopped"))
    drawn = re.findall(r'<path id="(l\d+)" d="M', html)
    used = re.findall(r'<use class="gpu-[^"]+" href="#(l\d+)"/>', html)
    assert drawn == sorted(set(drawn), key=drawn.index)
    assert set(used) == set(drawn)
    assert len(used) > len(drawn) > 0
    assert html.count('<path id="l') == len(drawn)


def test_the_times_of_the_drivers_readings_are_as_fine_as_these_mean_something(builder: ModuleType) -> None:
    analysis = builder.build_detailed_analysis()
    data, *texts = chart_data(analysis)
    times = {name: packed[0] for name, packed in data["gpus"][0]["rings"].items()}
    steps = {name: np.median(np.diff(analysis.run.ring.query(f"{name}.notna()")["t_s"])) for name in times}
    assert {name: step >= 0.1 for name, step in steps.items()} == {"gpu_util_pct": True, "power_w": False}
    assert {name: about["decimals"] for name, about in times.items()} == {"gpu_util_pct": 2, "power_w": 3}
    recorded = analysis.run.ring.query("gpu_util_pct.notna()")["t_s"]
    np.testing.assert_allclose(Reader("".join(texts)).values(times["gpu_util_pct"]), recorded, atol=0.005 + 1e-9)


def test_a_nan_in_the_data_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"x": float("nan")})


def test_text_that_no_page_can_hold_is_replaced(analysis: Analysis) -> None:
    html = render_html(replace(analysis, verdict=Verdict((Sentence("work", "\ud800 bad \x00 text"),))))
    assert "\ufffd bad \ufffd text" in html
    html.encode("utf-8")
