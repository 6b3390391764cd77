"""The top of the page: the lead with what it says to set, what belongs to it, and one table of possible speed-up."""

from dataclasses import replace

from support.samples import analysis_of

from gpu_report.catalogue import LAUNCH_BOUND
from gpu_report.model import Sentence, Verdict
from gpu_report.render import render_html
from gpu_report.render.page.compose import compose
from gpu_report.render.page.sections import speedup_limits
from gpu_report.render.page.sections.findings import advice_title, first_advice, unexpected_and_expected
from gpu_report.render.page.sections.overview import verdict
from gpu_report.render.speedup_rows import speedup_rows
from gpu_report.wording import about_length


def plain(text):
    return text.replace("\u00a0", " ")


def test_the_lead_can_be_copied_where_it_is_a_setting():
    shown = verdict(analysis_of("n-starved"))
    assert shown.copy == "workers=11"
    assert plain(shown.lead).startswith("Set `workers=11` (now 2): epochs drop from 13.2 s to about 4.0 s")
    assert plain(shown.rest).endswith("All 3 epochs, at 13.2 s each: 39 s \u2192 about 12 s.")
    assert verdict(analysis_of("m-mixed")).copy == ""


def test_what_the_verdict_says_to_do_is_not_listed_again():
    for name in ("n-starved", "s-oom", "s-storage"):
        analysis = analysis_of(name)
        assert first_advice(unexpected_and_expected(analysis.findings)[0], analysis) == ()
        assert advice_title(analysis) == "Also"


def test_a_leak_is_not_answered_with_a_smaller_batch():
    analysis = analysis_of("s-leak-oom")
    assert not any(
        "batch=-1" in each.text for each in first_advice(unexpected_and_expected(analysis.findings)[0], analysis)
    )


def test_what_quotes_somebody_else_becomes_no_code():
    hostile = Verdict((Sentence("ended", "It crashed (`sudo x`)."), Sentence("drops", "`nvidia-smi` fell.")))
    shown = verdict(replace(analysis_of("n-fed"), verdict=hostile))
    assert (shown.lead, shown.more) == ("It crashed ('sudo x').", "'nvidia-smi' fell.")


def test_all_rows_of_the_table_have_one_baseline_and_a_fix():
    rows = [tuple(map(plain, row)) for row in speedup_limits.limits(analysis_of("m-mixed")).rows]
    assert len({now for _, now, *_ in rows}) == 1
    assert "Short idle gaps in training" not in {name for name, *_ in rows}  # nobody can act on them
    assert all(expected.startswith("up to ") for _, _, expected, *_ in rows)


def test_the_expected_epoch_stands_before_the_limit():
    (row,) = speedup_limits.limits(analysis_of("n-small-batch")).rows
    name, now, expected, limit, saves = map(plain, row)
    assert (now, expected) == ("23.0 s", "4.0 s with batch=64, 5.8\u00d7 faster")
    assert "faster" not in limit
    analysis = analysis_of("n-small-batch")
    assert saves == f"about {about_length((23.0 - 4.0) * len(analysis.epochs))}"
    (advice,) = [each for view in compose(analysis).findings.cards for each in view.advice if each.change == "batch=64"]
    assert plain(advice.gain) == "expected to save 82 % of each epoch"  # 4.0 of 23.0 s, as the table has it
    assert speedup_limits.note(analysis_of("n-small-batch")).endswith(
        "Epoch now: median of all epochs, without the first."
    )
    assert name == "Steps too small for the GPU (launch-bound)"


def test_five_findings_stand_open_and_the_rest_is_folded_with_its_count():
    analysis = analysis_of("m-blocked")
    drop = analysis.findings[0]
    many = tuple(replace(drop, id=f"drop-{n}", start_t_s=float(n), end_t_s=n + 20.0 - n / 10) for n in range(1, 15))
    page = render_html(replace(analysis, findings=many))
    cards, folded = page.split('<details class="more">', maxsplit=1)
    assert cards.count('<article class="finding') == 5
    assert folded.split("</section>", maxsplit=1)[0].count('<article class="finding') == 9
    assert "<summary>9 more, each of them smaller</summary>" in page


def test_what_the_verdict_says_to_try_is_no_row_without_a_fix():
    (row,) = [row for row in speedup_rows(analysis_of("n-healthy-disk")) if row.limit.cause == LAUNCH_BOUND]
    assert row.why_not_expected == "try a larger batch"
