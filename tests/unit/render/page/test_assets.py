import base64
import gzip
import hashlib
import re
from pathlib import Path

import pytest
from support.packed import from_text

from gpu_report import template_files
from gpu_report.errors import GpuReportError
from gpu_report.fleet import page as fleet_page
from gpu_report.render.job import page as job_page
from gpu_report.render.page.blank import assets, small_page
from gpu_report.template_files import PAGE_TEMPLATE, find_templates


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A gpu_report folder without templates, in place of the real one."""
    folder = tmp_path / "site" / "gpu_report"
    folder.mkdir(parents=True)
    monkeypatch.setattr(template_files, "files", lambda name: folder)
    return folder


def test_the_installed_templates_come_before_the_checkout(package: Path) -> None:
    for place in (package, package.parent):
        (place / "templates").mkdir()
        (place / "templates" / PAGE_TEMPLATE).write_text("x")
    assert find_templates() == package / "templates"


def test_the_templates_of_a_checkout_are_found(package: Path) -> None:
    (package.parent / "templates").mkdir()
    (package.parent / "templates" / PAGE_TEMPLATE).write_text("x")
    assert find_templates() == package.parent / "templates"


def test_the_error_names_both_places(package: Path) -> None:
    with pytest.raises(GpuReportError) as error:
        find_templates()
    assert str(package / "templates") in str(error.value)
    assert str(package.parent / "templates") in str(error.value)


def test_the_smaller_chart_library_is_taken_where_it_is_there(tmp_path: Path) -> None:
    small = tmp_path / template_files.SMALL_LIBRARY
    small.parent.mkdir(parents=True)
    small.write_bytes(b"// small")
    assert assets.read_chart_library(tmp_path) == b"// small"


def test_without_it_the_page_takes_all_that_plotly_brings_with_its_licence(tmp_path: Path) -> None:
    library = assets.read_chart_library(tmp_path)
    assert len(library) > 3_000_000
    assert b"Licensed under the MIT license" in library[:500]


PAGES = {
    "report": assets.SCRIPTS,
    "comparison": small_page.SCRIPTS,
    "job": job_page.SCRIPTS,
    "fleet": fleet_page.SCRIPTS,
}


def test_every_script_file_is_in_a_page() -> None:
    templates = find_templates()
    used = {name for names in PAGES.values() for name in names}
    assert used == {path.stem for path in (templates / "js").glob("*.js")}


@pytest.mark.parametrize("names", PAGES.values(), ids=PAGES)
def test_modules_stand_in_a_page_once_without_their_syntax_and_share_no_name(names: tuple[str, ...]) -> None:
    assert len(names) == len(set(names))
    script = assets.read_script(find_templates(), names)
    assert not [line for line in script.splitlines() if line.startswith(("import ", "export "))]
    modules = [(find_templates() / "js" / f"{name}.js").read_text(encoding="utf-8") for name in names]
    named = r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)"
    declared = re.findall(named, "\n".join(modules), re.MULTILINE)
    assert len(declared) > 10
    assert {name for name in declared if declared.count(name) > 1} == set()


@pytest.mark.parametrize("names", PAGES.values(), ids=PAGES)
def test_no_module_has_text_of_several_lines_whose_indents_would_be_lost(names: tuple[str, ...]) -> None:
    script = assets.read_script(find_templates(), names)
    assert not [line for line in script.splitlines() if line.count("`") % 2]


def test_comments_and_indents_stay_out_of_the_page_and_all_else_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "one.js").write_text('/** A\n * b. */\nlet a = "//"; // of a\n  // alone\n\n  a /* b */;\n')
    (tmp_path / "report.css").write_text("/* a\n b */\np { color: red; } /* c */\n/* d */ q {}\n/* e */\nr {}\n")
    assert assets.read_script(tmp_path, ("one",)) == 'let a = "//";\na /* b */;\n'
    assert assets.read_style(tmp_path) == "p { color: red; } /* c */\n/* d */ q {}\nr {}\n"


def test_what_is_cut_off_as_a_comment_is_no_text_in_quotes() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (find_templates() / "js").glob("*.js")]
    code = [line.partition(" // ")[0] for text in texts for line in text.splitlines() if " // " in line]
    assert [line for line in code if any(line.count(quote) % 2 for quote in "\"'`")] == []


def test_neither_style_nor_script_can_end_the_element_it_stands_in() -> None:
    templates = find_templates()
    assert "</" not in assets.read_style(templates)
    assert "</script" not in assets.read_script(templates).lower()
    assert "<!--" not in assets.read_script(templates)


def test_the_policy_allows_nothing_but_these_texts() -> None:
    digest = base64.b64encode(hashlib.sha256(b"let a;").digest()).decode()
    policy = assets.content_security_policy(("let a;",), ("", "p {}"))
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_squeezed_text_is_the_same_each_time_and_opens_to_what_it_was() -> None:
    assert assets.squeeze("täglich") == assets.squeeze("täglich")
    assert gzip.decompress(from_text(assets.squeeze("täglich"))).decode() == "täglich"
