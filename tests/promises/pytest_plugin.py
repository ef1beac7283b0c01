"""The pytest side of `@pytest.mark.proves(...)`: what a test proves is checked, recorded, and told when it fails.

`tests/conftest.py` loads this plugin. Which requirement is covered is read from the sources (`tests/promises/scan.py`),
not here. The marker is registered in `pyproject.toml`.
"""

import difflib
from collections.abc import Generator, Iterator

import pytest

from tests.requirements import BY_ID


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test that claims an unknown requirement; record the others as its properties (JUnit XML shows them)."""
    for name in _read_ids(item):
        if name not in BY_ID:
            near = difflib.get_close_matches(name, BY_ID, n=1)
            hint = f"; the nearest is {near[0]}" if near else ""
            pytest.fail(f"there is no requirement {name!r}{hint}", pytrace=False)
        item.user_properties.append(("proves", name))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say below a failure which promises no longer hold."""
    report = yield
    broken = [f"{name}: {BY_ID[name].says}" for name in _read_ids(item) if name in BY_ID]
    if report.failed and broken:
        report.sections.append(("Promises that this test proves", "\n".join(broken)))
    return report


def _read_ids(item: pytest.Item) -> Iterator[str]:
    return (str(name) for mark in item.iter_markers("proves") for name in mark.args)
