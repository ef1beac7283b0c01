"""What one promise is.

Here is the record and the words it may use. The promises themselves are in the modules beside this one, and
`tests/requirements.py` puts them together.
"""

from dataclasses import dataclass
from typing import Literal

Status = Literal["open", "covered", "dropped"]
"""`open`: no test proves it yet. `covered`: at least one does. `dropped`: Denizen will not have it, and says why."""

Area = Literal["foundation", "discord", "context", "gate", "knowledge", "automation", "web", "admin"]
"""The part of the work that builds a promise."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One behaviour that Denizen promises, and where the promise comes from.

    A test proves it by the marker `@pytest.mark.proves("T13")`; the record itself never names tests, so that neither
    goes stale. `python -m tests.requirements --sync` sets `status` from those markers, in place, and expects it as a
    literal in the data.
    """

    id: str
    """Stable name; that of the inventory's row where the row has one."""

    source: str
    """Section of the inventory (with the row, where the id does not name it) or promise of the product."""

    says: str
    """The behaviour in one sentence of at most 220 characters, in the product's words."""

    status: Status

    issue: Area
    """The area of work that builds it."""

    reason: str = ""
    """Why it was dropped; empty otherwise."""

    same_as: tuple[str, ...] = ()
    """Ids that together state the same behaviour: where all of them are proved, so is this one."""
