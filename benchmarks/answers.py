"""Whether an agent answers from its documents: 15 questions about a handbook that lies among 500 other documents.

python -m benchmarks answers                the built-in model; some minutes
python -m benchmarks answers --never        without looking anything up beforehand

Twelve questions are answered by one line of the handbook each, three by nothing. The other documents are the manuals of
the installed Python: the docstrings of its modules. `right` says that the answer has the fact, `cited` that it names
the line too, `refused` that a question without an answer got none.
"""

import asyncio
import contextlib
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

HANDBOOK = {
    "opening.md": """# Opening hours

The library is open from Tuesday to Saturday, 10:00 to 19:00.
On Thursdays the reading room stays open until 22:00.
The library is closed in the first two weeks of August.
""",
    "membership.md": """# Membership

A year's membership costs 24 euros, and 9 euros for students and people under 26.
Membership cards are made at the front desk; bring a photo and a letter with your address.
A lost card is replaced for 3 euros.
""",
    "loans.md": """# Borrowing

Books can be borrowed for 28 days and renewed twice.
Board games are lent for 7 days and cannot be renewed.
Each day that a book is late costs 20 cents, at most 8 euros for each book.
""",
    "rooms.md": """# Rooms

The Magnolia room seats 14 people and has a projector.
The Juniper room seats 6 people; it has no window.
Rooms are booked with Odile at rooms@library.example, at least two days ahead.
""",
    "workshop.md": """# Workshop

The 3D printer may be used after an introduction, which is held every second Monday at 17:30.
Filament costs 6 cents a gram.
Wear safety glasses at the laser cutter. It is never left alone while it runs.
""",
    "volunteers.md": """# Volunteers

Volunteers meet on the last Wednesday of each month in the Juniper room.
New volunteers are shown around by Tadeusz.
The volunteers' travel costs are paid back up to 15 euros a month.
""",
    "safety.md": """# Safety

The first-aid box hangs behind the front desk, beside the fire extinguisher.
In case of fire the assembly point is the fountain in Mill Lane.
The alarm code is known to Odile and Tadeusz only.
""",
}


@dataclass(frozen=True)
class Question:
    """`fact` is a pattern that a right answer has; empty where the handbook says nothing."""

    text: str
    fact: str = ""


QUESTIONS = (
    Question("How long can I borrow a board game?", r"\b(7|seven) days|a week"),
    Question("What does a membership cost for students?", r"\b(9|nine)\b"),
    Question("Until when is the reading room open on Thursdays?", r"22|10 ?p"),
    Question("How many people fit into the Magnolia room?", r"\b14\b|fourteen"),
    Question("Whom do I ask to book a room?", r"Odile"),
    Question("What does filament for the 3D printer cost?", r"\b6 cents|0\.06"),
    Question("When do the volunteers meet?", r"last Wednesday"),
    Question("Where is the assembly point in case of fire?", r"fountain|Mill Lane"),
    Question("What is the most that a late book can cost me?", r"\b8 euro|eight euro|€ ?8"),
    Question("How much does a new card cost when I lost mine?", r"\b3 euro|three euro|€ ?3"),
    Question("Where do I find the first-aid box?", r"front desk"),
    Question("Who shows new volunteers around?", r"Tadeusz"),
    Question("What is the password of the guest wifi?"),
    Question("Who founded the library, and in which year?"),
    Question("How much does it cost to rent a bicycle from the library?"),
)
REFUSAL = re.compile(r"(?i)don'?t know|do not (know|say|answer|mention|contain)|not (found|mention|contain|provide|in (my|the))"
                     r"|no (information|answer|mention)|nothing|cannot (find|answer)|unknown|does(n'?t| not)")


def write_others(folder: Path) -> int:
    """Writes the docstrings of the standard library's modules; returns how many."""
    count = 0
    names = sorted(sys.stdlib_module_names)
    for name in names:
        with contextlib.suppress(Exception):
            text = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "pydoc", name], capture_output=True, text=True, timeout=20, check=True
            ).stdout
            (folder / f"{name}.txt").write_text(text[:20_000])
            count += 1
    return count


def ask(home: Path, text: str) -> str:
    done = subprocess.run(
        [Path(sys.executable).parent / "denizen", "ask", text], env={**os.environ, "DENIZEN_HOME": str(home)},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
    )
    return done.stdout.strip() or done.stderr.strip()
