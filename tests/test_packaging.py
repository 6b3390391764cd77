"""What silently fails in packaging (reference: package_dir mappings), each trap with its guard."""

import configparser
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from gpu_report.cli.commands.demo import NAME as DEMO
from gpu_report.template_files import SMALL_LIBRARY

ROOT = Path(__file__).resolve().parent.parent
MAPPED = {"gpu_report.templates", "gpu_report.docs", "gpu_report.demo_run"}


@pytest.fixture(scope="module")
def config():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def listed(config, section, option):
    return [line.strip() for line in config[section][option].splitlines() if line.strip()]


def test_every_package_of_the_tree_is_listed(config):
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "gpu_report").rglob("__init__.py")}
    assert set(listed(config, "options", "packages")) == found | MAPPED


def test_mapped_folders_exist(config):
    mapping = dict(line.split(" = ") for line in listed(config, "options", "package_dir"))
    assert set(mapping) == MAPPED
    assert all((ROOT / folder).is_dir() for folder in mapping.values())


def test_every_template_matches_a_pattern_that_ships_it(config):
    patterns = listed(config, "options.package_data", "gpu_report.templates")
    files = [p.relative_to(ROOT / "templates") for p in (ROOT / "templates").rglob("*") if p.is_file()]
    files = [f for f in files if "vendor" not in f.parts]
    files += [Path(SMALL_LIBRARY), Path(SMALL_LIBRARY).with_name("LICENSE")]  # where they were fetched
    assert [f for f in files if not any(fnmatch(str(f), p.replace("**/", "")) for p in patterns)] == []


def test_the_demo_run_ships_as_a_whole(config):
    mapping = dict(line.split(" = ") for line in listed(config, "options", "package_dir"))
    run = ROOT / "sample_runs" / DEMO
    assert ROOT / mapping["gpu_report.demo_run"] == run
    patterns = listed(config, "options.package_data", "gpu_report.demo_run")
    shipped = {path for pattern in patterns for path in run.glob(pattern) if path.is_file()}
    assert shipped == {path for path in run.rglob("*") if path.is_file()}


def test_the_core_needs_neither_torch_nor_ultralytics(config):
    core = " ".join(listed(config, "options", "install_requires"))
    assert "torch" not in core
    assert "ultralytics" not in core


RENDER = "from gpu_report.cli import cli; cli(['demo', 'r.html'], standalone_mode=False)"


@pytest.mark.parametrize("layout", ["wheel", "checkout"])
def test_templates_and_demo_run_are_found(layout, tmp_path):
    """A wheel has them inside the package; a checkout and an editable install have them beside it."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "gpu_report", site / "gpu_report", ignore=shutil.ignore_patterns("__pycache__"))
    package = site / "gpu_report"
    places = {
        "wheel": (package / "templates", package / "demo_run"),
        "checkout": (site / "templates", site / "sample_runs" / DEMO),
    }[layout]
    shutil.copytree(ROOT / "templates", places[0])
    shutil.copytree(ROOT / "sample_runs" / DEMO, places[1])
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import gpu_report; print(gpu_report.__file__); {RENDER}"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert str(site) in done.stdout
    assert (tmp_path / "r.html").exists()


def test_without_templates_the_error_names_both_places(tmp_path):
    shutil.copytree(ROOT / "gpu_report", tmp_path / "gpu_report", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "sample_runs" / DEMO, tmp_path / "gpu_report" / "demo_run")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.argv = ['gpu-report', 'demo', 'r.html']; "
        "from gpu_report.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.count("templates") >= 2
    assert "Traceback" not in done.stderr


def test_make_package_asks_for_the_chart_library_only_where_it_was_fetched():
    """An attempt without a network leaves an empty templates/vendor."""
    script = (ROOT / ".ci" / "package").read_text()
    assert f"if [ -e templates/{SMALL_LIBRARY} ]; then" in script
    assert "-d templates/vendor" not in script
