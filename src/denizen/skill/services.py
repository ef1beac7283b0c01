"""The services that a tool can use beyond its own call, as protocols and records.

Here are those that reach out: programs, downloads, a model, the read-only shell, documents, and actions on the
platform. `archive_services` has the archive of messages, `kept_services` what agents keep for people, such as memory
and reminders, and `instance_services` Denizen itself. Each is None in a context where the skill has no permission for
it, or where there is none. The composition root passes in what implements them.

What a tool gets is limited to what the asker and everybody who reads the answer may see, at the moment of the call. A
thing that may not be seen and a thing that does not exist raise the same NotFound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from denizen.domain.json import Json, JsonObject
from denizen.domain.openapi import ApiDocument, ApiOperation
from denizen.domain.record import record
from denizen.ports.documents import IndexedPassage
from denizen.ports.fetch import DownloadedFile, FetchedPage, WebRequest
from denizen.ports.sandbox import ShellResult


class Download(Protocol):
    """Downloads a file (`ports/fetch`): private addresses are out of reach."""

    async def __call__(self, url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> DownloadedFile:
        """Returns the file. Raises NotAllowed, InvalidInput, NotFound or Unavailable; a tool that does not catch them
        returns them as its error.
        """
        ...


class ApiDocumentReader(Protocol):
    """Reads OpenAPI documents and checks the arguments of their operations. Both raise InvalidInput."""

    def read(self, text: str, address: str) -> ApiDocument:
        """`text` is JSON or YAML; `address` is where it came from, or empty."""
        ...

    def check(self, operation: ApiOperation, schemas: JsonObject, arguments: JsonObject) -> JsonObject:
        """Returns the arguments to call with. `schemas` are those of the document."""
        ...


class SendRequest(Protocol):
    """Sends one request of any method to an API (`ports/fetch`): private addresses are out of reach."""

    async def __call__(self, request: WebRequest, *, timeout_s: float = 30.0, max_bytes: int = 500_000) -> FetchedPage:
        """Returns the answer; redirects are not followed. Raises as `Fetch` does."""
        ...


@record
class ProgramResult:
    """The output of a program, both streams in the order in which they came. `exit_code` is None when the program
    was stopped: on its time limit or, with `is_cut`, because it printed too much.
    """

    text: str
    exit_code: int | None
    is_cut: bool = False


NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class RunProgram(Protocol):
    """Runs a program without a shell, without input and without Denizen's secrets in its environment. The program
    and all that it started end with the call. Its output is limited to 1 MB.
    """

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        timeout_s: float = 30.0,
        env: Mapping[str, str] = NO_VARIABLES,
    ) -> ProgramResult:
        """Runs the program in `cwd`, or else in the home folder; `env` is what it sees besides PATH, HOME and LANG.
        Raises NotFound for a program that cannot be started.
        """
        ...


class AskModel(Protocol):
    """Sends one request to the agent's model, without tools or history. The budgets of who asked pay for it."""

    async def __call__(self, instructions: str, text: str, *, max_output_tokens: int = 4000) -> str:
        """Returns the answer. Raises LimitExceeded when a budget is used up, and Unavailable when there is no
        answer.
        """
        ...


class RunShell(Protocol):
    """Runs commands in the read-only shell over what this agent may look into (`ports/sandbox`)."""

    async def __call__(self, commands: Sequence[str]) -> tuple[ShellResult, ...]:
        """Runs 1 to 10 commands, one after another. Raises Unavailable where the system offers no isolation."""
        ...


class SearchDocuments(Protocol):
    """Searches the sources of knowledge by words and by embeddings."""

    async def __call__(
        self, question: str, *, sources: Collection[str] = (), limit: int = 6
    ) -> Sequence[IndexedPassage]:
        """Returns the best passages first; none when nothing was read. Raises NotFound for a source that does not
        exist.
        """
        ...


class PlatformActions(Protocol):
    """Actions of the agent's account on the platform, each limited to what the asker and the account may both do at
    that moment.
    """

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        """Runs an action and returns its result. The platform defines the actions and their details.

        Raises NotAllowed for what the asker or the account may not do, and off platforms; NotFound for a person, room
        or message that does not exist; InvalidInput for wrong details; Unavailable when the platform does not answer. A
        tool that does not catch them returns them as its error.
        """
        ...

    async def check(self, action: str, /, **details: Json) -> None:
        """Raises what `act` would raise before it changes anything. Changes nothing."""
        ...
