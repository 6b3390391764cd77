import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from gpu_report.model import Analysis


def load_builder() -> ModuleType:
    """Import the builder by its path: the tests' folders are no packages and not on sys.path."""
    spec = importlib.util.spec_from_file_location("analysis_builder", Path(__file__).with_name("analysis_builder.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def builder() -> ModuleType:
    return load_builder()


@pytest.fixture(scope="session")
def analysis(builder: ModuleType) -> Analysis:
    return builder.build_analysis()
