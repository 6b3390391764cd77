import pytest
from support.fleet import copied, indexed


@pytest.fixture(scope="session")
def kept_fleet(tmp_path_factory):
    """A folder of three runs, one of which cannot be read, and its fleet: to look at, not to change."""
    base = tmp_path_factory.mktemp("fleet")
    runs = copied(base / "runs", starved="n-starved", half="m-two-gpus-one-used")
    (runs / "damaged").mkdir()
    (runs / "damaged" / "samples.csv").write_text("hello\n")
    indexed(runs, base / "fleet")
    return runs, base / "fleet"
