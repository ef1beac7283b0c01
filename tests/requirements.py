"""Everything that Denizen promises, as data.

`REQUIREMENTS` holds one entry for every row of the inventory that states a behaviour, for the rules by which the five
united systems were reconciled, and for the promises of the product. The rows themselves are kept by hand in
`tests/promises/`. A test that proves an entry is marked `@pytest.mark.proves("T13")`; `tests/arch/test_requirements.py`
checks the entries and the markers against each other.

    python -m tests.requirements --report           counts for each area of work
    python -m tests.requirements --report gate      the same, and what is open in one area
    python -m tests.requirements --sync             set open and covered from the markers in the tests
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from tests.promises.claudebot import CLAUDEBOT
from tests.promises.claudebot_settings import CLAUDEBOT_SETTINGS
from tests.promises.local_discord import LOCAL_DISCORD
from tests.promises.requirement import Area, Requirement, Status
from tests.promises.savoir import SAVOIR
from tests.promises.savoir_records import SAVOIR_RECORDS
from tests.promises.savoir_routes import SAVOIR_ROUTES
from tests.promises.savoir_screens import SAVOIR_SCREENS
from tests.promises.savoir_sources import SAVOIR_SOURCES
from tests.promises.scan import scan_tests
from tests.promises.sync import find_proved, find_unknown, plan_statuses, sync_statuses
from tests.promises.tailored import TAILORED
from tests.promises.tailored_settings import TAILORED_SETTINGS
from tests.promises.tailored_surfaces import TAILORED_SURFACES
from tests.promises.tailored_tools import TAILORED_TOOLS
from tests.promises.tailored_weaknesses import TAILORED_WEAKNESSES
from tests.promises.union import UNION
from tests.promises.vexai import VEXAI
from tests.promises.vexai_skills import VEXAI_SKILLS

__all__ = ["BY_ID", "REQUIREMENTS", "TESTS", "Area", "Requirement", "Status"]

REQUIREMENTS: tuple[Requirement, ...] = (
    *VEXAI,
    *VEXAI_SKILLS,
    *SAVOIR,
    *SAVOIR_SOURCES,
    *SAVOIR_RECORDS,
    *SAVOIR_ROUTES,
    *SAVOIR_SCREENS,
    *CLAUDEBOT,
    *CLAUDEBOT_SETTINGS,
    *TAILORED,
    *TAILORED_SETTINGS,
    *TAILORED_TOOLS,
    *TAILORED_SURFACES,
    *TAILORED_WEAKNESSES,
    *LOCAL_DISCORD,
    *UNION,
)

BY_ID: Mapping[str, Requirement] = MappingProxyType({each.id: each for each in REQUIREMENTS})

TESTS = Path(__file__).parent


def format_report(requirements: Sequence[Requirement], listed: Area | None = None) -> str:
    """A table of counts by area and status; with `listed`, also the open requirements of that area."""
    areas: tuple[Area, ...] = get_args(Area)
    statuses: tuple[Status, ...] = get_args(Status)
    lines = [_format_row("area", [*statuses, "all"])]
    for area in (*areas, "all"):
        counts = Counter(each.status for each in requirements if area in {each.issue, "all"})
        lines.append(_format_row(area, [*(counts[status] for status in statuses), counts.total()]))
    if listed is not None:
        lines.append("")
        lines += [f"{each.id}: {each.says}" for each in requirements if (each.issue, each.status) == (listed, "open")]
    return "\n".join(lines)


def sync() -> str:
    """Set open and covered in the data from the markers in the tests, and say what changed.

    Raises ValueError when a marker cannot be read or names no requirement; nothing is written then.
    """
    scan = scan_tests(TESTS)
    unknown = [f"{each.test}: there is no requirement {each.requirement}" for each in find_unknown(scan.proofs, BY_ID)]
    if scan.faults or unknown:
        raise ValueError("\n".join([*scan.faults, *unknown]))
    proved = find_proved(REQUIREMENTS, {proof.requirement for proof in scan.proofs})
    wanted = plan_statuses(REQUIREMENTS, proved)
    sync_statuses(TESTS / "promises", wanted)
    return "\n".join([*(f"{name}: {status}" for name, status in wanted.items()), f"{len(wanted)} changed"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line above; the exit code is 0, or 2 when the markers in the tests are wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description="The promises of Denizen.")
    parser.add_argument("--sync", action="store_true", help="set open and covered from the markers in the tests")
    parser.add_argument("--report", nargs="?", const="", choices=["", *get_args(Area)], metavar="AREA")
    chosen = parser.parse_args(arguments)
    if chosen.sync:
        try:
            sys.stdout.write(sync() + "\n")
        except ValueError as error:
            sys.stderr.write(f"{error}\n")
            return 2
    if chosen.report is not None or not chosen.sync:
        sys.stdout.write(format_report(REQUIREMENTS, chosen.report or None) + "\n")
    return 0


def _format_row(name: str, cells: Iterable[object]) -> str:
    return f"{name:<12}" + "".join(f"{cell!s:>9}" for cell in cells)


if __name__ == "__main__":
    raise SystemExit(main())
