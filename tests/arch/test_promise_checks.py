"""The machinery behind `tests/requirements.py`: markers read from sources, statuses set, failures told."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.promises.requirement import Requirement, Status
from tests.promises.scan import scan_tests
from tests.promises.sync import find_proved, plan_statuses, rewrite_statuses, sync_statuses
from tests.requirements import REQUIREMENTS, TESTS, format_report


def read_proofs(folder: Path, source: str, name: str = "test_it.py") -> tuple[set[tuple[str, str]], int]:
    """The proofs (requirement, test without its file) in one source, and the number of faults."""
    (folder / name).write_text("import pytest\n" + dedent(source), encoding="utf-8")
    scan = scan_tests(folder)
    return {(each.requirement, each.test.partition("::")[2]) for each in scan.proofs}, len(scan.faults)


def row(name: str, status: Status = "open", same_as: tuple[str, ...] = ()) -> Requirement:
    """A requirement with nothing but what setting its status needs."""
    return Requirement(name, "1", "It works.", status=status, issue="gate", same_as=same_as)


def test_a_marker_on_a_test_proves_all_of_its_ids(tmp_path: Path) -> None:
    source = """
        @pytest.mark.anyio
        @pytest.mark.proves("A1", "A2")
        async def test_one(): ...
    """
    assert read_proofs(tmp_path, source) == ({("A1", "test_one"), ("A2", "test_one")}, 0)


def test_marks_of_module_and_class_reach_every_test_inside(tmp_path: Path) -> None:
    source = """
        pytestmark = [pytest.mark.proves("A1"), pytest.mark.anyio]

        @pytest.mark.proves("A2")
        class TestThing:
            pytestmark = pytest.mark.proves("A3")
            def test_one(self): ...

        def test_two(): ...
    """
    inside = {(name, "TestThing::test_one") for name in ("A1", "A2", "A3")}
    assert read_proofs(tmp_path, source) == (inside | {("A1", "test_two")}, 0)


def test_marks_of_parameters_count_written_in_place_or_kept_in_a_name(tmp_path: Path) -> None:
    source = """
        FEW = [pytest.param(1, marks=pytest.mark.proves("A1"))]
        CASES: list[object] = [*FEW, pytest.param(2, marks=[pytest.mark.proves("A2")])]

        @pytest.mark.parametrize("case", CASES)
        @pytest.mark.parametrize("other", [pytest.param(3, marks=(pytest.mark.proves("A3"),))])
        def test_one(case, other): ...
    """
    assert read_proofs(tmp_path, source) == ({(name, "test_one") for name in ("A1", "A2", "A3")}, 0)


def test_a_contract_suite_proves_what_its_marks_say_where_a_test_class_inherits_it(tmp_path: Path) -> None:
    suite = """
        class StoreContract:
            @pytest.mark.proves("A1")
            def test_one(self): ...

        class NobodysContract:
            @pytest.mark.proves("A2")
            def test_two(self): ...
    """
    assert read_proofs(tmp_path, suite, "store_contract.py") == (set(), 2)
    source = """
        from store_contract import StoreContract

        @pytest.mark.proves("A3")
        class TestMemory(StoreContract): ...
    """
    found = {("A1", "StoreContract::test_one"), ("A3", "TestMemory")}
    assert read_proofs(tmp_path, source) == (found, 1)


def test_a_state_machine_proves_what_the_mark_of_its_module_says(tmp_path: Path) -> None:
    source = """
        pytestmark = pytest.mark.proves("A1")
        TestInbox = InboxMachine.TestCase
    """
    assert read_proofs(tmp_path, source) == ({("A1", "TestInbox")}, 0)


def test_a_test_that_does_not_have_to_pass_proves_nothing(tmp_path: Path) -> None:
    source = """
        @pytest.mark.skip
        @pytest.mark.proves("A1")
        def test_one(): ...

        @pytest.mark.xfail(reason="not yet")
        class TestThing:
            @pytest.mark.proves("A2")
            def test_two(self): ...

        @pytest.mark.parametrize("case", [pytest.param(1, marks=[pytest.mark.skip, pytest.mark.proves("A3")])])
        @pytest.mark.skipif(False, reason="only somewhere")
        @pytest.mark.proves("A4")
        def test_three(case): ...
    """
    assert read_proofs(tmp_path, source) == ({("A4", "test_three")}, 0)


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.proves("A1")\ndef helper(): ...',
        '@pytest.mark.proves("A1")\nclass TestEmpty: ...',
        '@pytest.mark.proves("A1")\n@pytest.fixture\ndef store(): ...',
        'pytestmark = pytest.mark.proves("A1")',
        'CASES = [pytest.param(1, marks=pytest.mark.proves("A1"))]\ndef test_one(): ...',
        "@pytest.mark.proves\ndef test_one(): ...",
        'proves = pytest.mark.proves\n@proves("A1")\ndef test_one(): ...',
    ],
)
def test_a_marker_that_reaches_no_test_is_a_fault(tmp_path: Path, source: str) -> None:
    assert read_proofs(tmp_path, source) == (set(), 1)


def test_a_marker_in_a_file_that_pytest_does_not_collect_is_a_fault(tmp_path: Path) -> None:
    source = '@pytest.mark.proves("A1")\ndef test_one(): ...'
    assert read_proofs(tmp_path, source, "cases.py") == (set(), 1)


@pytest.mark.parametrize("arguments", ["", "A1", "*IDS", "1", "names=['A1']"])
def test_ids_that_are_not_plain_strings_are_a_fault(tmp_path: Path, arguments: str) -> None:
    source = f"@pytest.mark.proves({arguments})\ndef test_one(): ..."
    assert read_proofs(tmp_path, source) == (set(), 1)


def test_an_entry_that_repeats_others_is_proved_when_all_of_them_are() -> None:
    rows = [row("A1"), row("A2"), row("A3", same_as=("A1", "A2"))]
    assert find_proved(rows, {"A1"}) == {"A1"}
    assert find_proved(rows, {"A1", "A2"}) == {"A1", "A2", "A3"}
    assert find_proved(rows, {"A3"}) == {"A3"}


def test_statuses_follow_the_proofs_both_ways_and_dropped_stays() -> None:
    rows = [row("A1"), row("A2", "covered"), row("A3", "covered"), row("A4"), row("A5", "dropped")]
    assert plan_statuses(rows, {"A1", "A3", "A5"}) == {"A1": "covered", "A2": "open"}


def test_setting_a_status_changes_nothing_else_of_the_text() -> None:
    before = dedent("""
        ROWS = (  # kept as it is
            Requirement("A1", "2.7 …path", "Says status=\\"open\\" itself.", status="open", issue="gate"),
            Requirement(
                "A2",
                "1",
                "It "
                "works.",
                status='covered',  # so far
                issue="web",
            ),
        )
    """)
    after = before.replace('itself.", status="open"', 'itself.", status="covered"').replace("'covered'", '"open"')
    assert rewrite_statuses(before, {"A1": "covered", "A2": "open"}) == after
    assert rewrite_statuses(before, {"A9": "covered"}) == before


def test_every_entry_can_be_set_in_the_data_as_it_stands(tmp_path: Path) -> None:
    for path in (TESTS / "promises").glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    sync_statuses(tmp_path, {each.id: "dropped" for each in REQUIREMENTS})
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.py"))
    assert text.count('status="dropped"') == len(REQUIREMENTS)


def test_the_report_counts_by_area_and_lists_what_is_open() -> None:
    report = format_report([row("A1"), row("A2", "covered"), row("A3", "dropped")], "gate").splitlines()
    assert report[0].split() == ["area", "open", "covered", "dropped", "all"]
    assert "gate 1 1 1 3" in [" ".join(line.split()) for line in report]
    assert " ".join(report[-3].split()) == "all 1 1 1 3"
    assert report[-2:] == ["", "A1: It works."]


def run_pytest(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin, as the project does, over one test file in a folder of its own."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = proves\n", encoding="utf-8")
    (folder / "test_it.py").write_text("import pytest\n" + dedent(source), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.promises.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--junit-xml=it.xml",
    ]
    environment = {"PYTHONPATH": str(TESTS.parent)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_failure_tells_the_promises_that_no_longer_hold(tmp_path: Path) -> None:
    source = """
        @pytest.mark.proves("P6", "V10")
        def test_one(): assert False

        @pytest.mark.proves("V9")
        def test_two(): ...
    """
    result = run_pytest(tmp_path, source)
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "P6: Without key, token or server one command gives a working agent" in result.stdout
    assert "V10: " in result.stdout
    assert "V9: " not in result.stdout
    assert '<property name="proves" value="V9" />' in (tmp_path / "it.xml").read_text(encoding="utf-8")


def test_a_test_of_a_requirement_that_does_not_exist_fails_and_names_the_nearest(tmp_path: Path) -> None:
    result = run_pytest(tmp_path, '@pytest.mark.proves("V-skil-voice")\ndef test_one(): ...')
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "there is no requirement 'V-skil-voice'; the nearest is V-skill-voice" in result.stdout
