"""Answers of the built-in model to 15 questions about a handbook of 7 files that lies among 400 other documents.

python -m benchmarks answers                with and without what is looked up beforehand; a quarter of an hour

Twelve questions are answered by one line of the handbook each, three by nothing. The other documents are the docstrings
of Python's own modules. `right` says that an answer has the fact, `cited` that it names the file too, `refused` that a
question without an answer got none. The weights are those of the home folder (`denizen models pull`).
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks.processes import denizen_command, run_server

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
REFUSAL = re.compile(
    r"(?i)don'?t know|do not (know|say|answer|mention|contain)"
    r"|not (\w+ )?(found|mention|contain|provid|specif|in (my|the))"
    r"|no (information|answer|mention)|nothing|cannot (find|answer)|unknown|does(n'?t| not)"
)


MANUALS = 400
MANUAL_CHARS = 20_000

CONFIG = """\
agents:
  denizen: {{{settings}}}
"""


def main(_url: str = "") -> None:
    """Asks all questions three times: without looking up, with it, and from the documents only."""
    weights = Path(os.environ.get("DENIZEN_HOME", Path.home() / ".denizen")) / "models"
    if not any(weights.glob("*.gguf")):
        print(f"There are no weights in {weights}; run `denizen models pull` first.")
        return
    for settings in ("look_up: never", "look_up: auto", "answers_from: sources"):
        with tempfile.TemporaryDirectory() as folder:
            home = make_library(Path(folder), weights, settings)
            with run_server(home):
                show_answers(settings, [(question, *ask(home, question.text)) for question in QUESTIONS])


def make_library(folder: Path, weights: Path, settings: str) -> Path:
    """Returns a home folder whose agent knows the handbook and the manuals."""
    home, handbook, manuals = (folder / name for name in ("home", "handbook", "manuals"))
    for each in (home, handbook, manuals):
        each.mkdir()
    for name, text in HANDBOOK.items():
        (handbook / name).write_text(text, encoding="utf-8")
    for name, text in islice(read_manuals(), MANUALS):
        (manuals / name).write_text(text, encoding="utf-8")
    (home / "denizen.yaml").write_text(CONFIG.format(settings=settings), encoding="utf-8")
    (home / "models").symlink_to(weights)
    for source in (handbook, manuals):
        subprocess.run([*denizen_command(home), "sources", "add", source], check=True, stdout=subprocess.DEVNULL)
    synced = [*denizen_command(home), "sources", "sync"]
    subprocess.run(synced, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return home


def read_manuals() -> Iterator[tuple[str, str]]:
    """Yields names and texts: the docstrings of each module of the standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for number, file in enumerate(sorted(library.rglob("*.py"))):
        if {"test", "tests", "site-packages", "idlelib"}.intersection(file.parts):
            continue
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeError):
            continue
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
        told = [(getattr(node, "name", file.stem), ast.get_docstring(node)) for node in nodes]
        text = "\n\n".join(f"# {name}\n\n{docstring}" for name, docstring in told if docstring)
        if text:
            yield f"{file.stem}-{number}.md", text[:MANUAL_CHARS]


def ask(home: Path, text: str) -> tuple[str, float]:
    """Returns the answer, and how long it took in seconds."""
    started = time.monotonic()
    command = [*denizen_command(home), "ask", text]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip(), time.monotonic() - started


def show_answers(settings: str, answers: Sequence[tuple[Question, str, float]]) -> None:
    """Prints each answer, and the counts."""
    right = [
        answer for question, answer, _ in answers if question.fact and re.search(question.fact, answer, re.IGNORECASE)
    ]
    refused = [answer for question, answer, _ in answers if not question.fact and REFUSAL.search(answer)]
    for question, answer, seconds in answers:
        print(f"  {seconds:5.1f} s  {question.text}  {' '.join(answer.split())[:150]}")
    cited = sum("handbook/" in answer for answer in right)
    usual_s = median(seconds for *_, seconds in answers)
    asked = sum(bool(question.fact) for question in QUESTIONS)
    print(
        f"{settings}: right {len(right)} of {asked}, cited {cited}, "
        f"refused {len(refused)} of {len(QUESTIONS) - asked}, median {usual_s:.1f} s"
    )
