"""The port of a Google account: mail, calendars and files. Implemented by `adapters/google`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from denizen.domain.mail import MailSummary, OutgoingMail, ReceivedMail
from denizen.domain.record import record
from denizen.ports.calendar import CalendarAccount
from denizen.ports.users import AuthorizationRequest


class GoogleService(StrEnum):
    """A part of a Google account, by the name of the skill that uses it."""

    GMAIL = "gmail"
    CALENDAR = "google_calendar"
    DRIVE = "google_drive"


@record(kw_only=True)
class GoogleLogin:
    """The application with which Denizen acts at Google, and the token that the account's owner gave it. `api_url` is
    another address for all of Google's, empty for Google itself.
    """

    client_id: str
    client_secret: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)
    api_url: str = ""


@record(kw_only=True)
class DriveFile:
    """A file of Google Drive. `size_bytes` is 0 for Google's own documents, which have none."""

    id: str
    name: str
    media_type: str
    changed_at: str
    size_bytes: int = 0
    url: str = ""


class Gmail(Protocol):
    """Mail of a Google account. Raises as `GoogleAccount`."""

    async def search(self, query: str, *, limit: int = 20) -> Sequence[MailSummary]:
        """Returns the newest mails that fit the query, which is in the language of Gmail's search."""
        ...

    async def read(self, mail: str) -> ReceivedMail: ...

    async def draft(self, mail: OutgoingMail) -> str:
        """Leaves the mail among the drafts and returns its id. Raises InvalidInput for what is no address."""
        ...

    async def send_draft(self, draft: str) -> bool:
        """Sends a draft. False where it is not there, since it was sent already."""
        ...


class GoogleDrive(Protocol):
    """Files of a Google account. Raises as `GoogleAccount`."""

    async def find(self, words: str = "", *, folder: str = "", limit: int = 20) -> Sequence[DriveFile]:
        """Returns files with these words in name or text, the best first; without words the newest."""
        ...

    async def read(self, file: str) -> tuple[DriveFile, str]:
        """Returns a file with its text. Raises InvalidInput for one that has none."""
        ...

    async def upload(self, name: str, data: bytes, *, key: str, media_type: str, folder: str = "") -> DriveFile:
        """Makes a file, or returns the one that was made with this key."""
        ...


class GoogleAccount(Protocol):
    """One account at Google. Every call raises NeedsAttention where Denizen is not connected, or no longer, NotFound
    for what is not there, NotAllowed for what the token does not cover, and Unavailable where Google does not answer.
    """

    @property
    def gmail(self) -> Gmail: ...

    @property
    def calendars(self) -> CalendarAccount: ...

    @property
    def drive(self) -> GoogleDrive: ...

    async def check(self, services: Collection[GoogleService]) -> str:
        """Asks each of the services something small. Returns the address of the account, where one tells it."""
        ...


class GoogleConsent(Protocol):
    """The dialogue in which a person lets Denizen use their account."""

    async def begin(self, services: Collection[GoogleService], *, redirect_uri: str) -> AuthorizationRequest: ...

    async def complete(self, *, code: str, verifier: str, redirect_uri: str) -> str:
        """Returns the token to keep. Raises NotAllowed where Google refuses the code, Unavailable, and NeedsAttention
        where Google gives no token to keep.
        """
        ...
