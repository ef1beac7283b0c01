"""The skills of this server, for people who look after them: what there is, and the review of what was written.

Nothing of the owner's skills runs before its owner has seen exactly this content and enabled it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.tool import Tier


class SkillEventKind(StrEnum):
    """The things that are done to a skill."""

    WRITTEN = "written"
    ENABLED = "enabled"
    REFUSED = "refused"


@record
class SkillEvent:
    """Something that was done to a skill whose content had this digest. `by` tells who, such as "ada for olga"."""

    at: datetime
    kind: SkillEventKind
    sha256: str
    by: str


@record
class SkillToolInfo:
    """A tool of a skill, with the tier that counts; of a skill that is not on, the lowest that it may have."""

    name: str
    tier: Tier


@record(kw_only=True)
class SkillState:
    """A skill. `origin` tells where it is from, and `default` what holds where the configuration says nothing.

    `state` is on, idle (on, and of no use as things are), off, waiting (nobody has decided yet), changed (since it was
    enabled), failed or missing. `why` and
    `fix` say what is wrong, and `trace` the lines of its code that led there.
    """

    name: str
    origin: str
    state: str
    description: str = ""
    version: str = ""
    default: str = ""
    tools: Sequence[SkillToolInfo] = ()
    why: str = ""
    fix: str = ""
    trace: str = ""
    is_built_in: bool = False


@record
class SkillFileChange:
    """The difference between a file as it was enabled last and as it is, as `diff -u` shows it. Without `is_shown` it
    is no text, and the sentence in its place tells size and sha256.
    """

    name: str
    diff: str
    is_shown: bool = True


@record(kw_only=True)
class SkillReview:
    """A skill of the owner with its content, which `sha256` is the digest of. `changes` are against the content that
    was enabled last, or the whole of it. `problems` are what the check found without running anything; `refusal` tells
    what refusing it does, empty where there is nothing to refuse.
    """

    state: SkillState
    sha256: str
    changes: Sequence[SkillFileChange]
    permissions: Sequence[str]
    problems: Sequence[str]
    events: Sequence[SkillEvent]
    is_compared: bool
    refusal: str

    @property
    def hidden_files(self) -> int:
        """How many changed files nobody can read here."""
        return sum(not change.is_shown for change in self.changes)


class SkillConfiguration(Protocol):
    """Shows and changes the skills; one for a process. Changes raise as
    `ConfigurationFiles.replace`, and are in the audit log.
    """

    async def list_skills(self) -> Sequence[SkillState]:
        """Returns the built-in skills, then those of the owner."""
        ...

    async def review(self, name: str) -> SkillReview:
        """Raises NotFound."""
        ...

    async def switch(self, by: Principal, name: str, *, is_on: bool) -> None:
        """Switches a built-in skill, or one of the owner off. Raises NotFound."""
        ...

    async def enable(self, by: Principal, name: str, sha256: str) -> None:
        """Checks the skill in a child process, and loads exactly this content from now on. Raises InvalidInput with
        what the check found, and Conflict where the content is another by now.
        """
        ...

    async def refuse(self, by: Principal, name: str, sha256: str) -> None:
        """Puts back the content that was enabled last; deletes a skill that never was. Either way the refused content
        is kept in the history. Raises Conflict where the content is another by now, NotFound where none is kept.
        """
        ...
