"""Gmail. https://developers.google.com/workspace/gmail/api/reference/rest"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import partial
from urllib.parse import quote

import anyio
from anyio import to_thread

from denizen.adapters.google.client import GMAIL, GoogleClient, GoogleRequest, Row, get_row, get_text, list_rows
from denizen.domain.clock import Clock
from denizen.domain.errors import NotFound, Unavailable
from denizen.domain.mail import MailSummary, OutgoingMail, ReceivedMail, read_mail, write_mail

_MESSAGES = "/users/me/messages"
_DRAFTS = "/users/me/drafts"
_SHOWN = ("From", "Subject", "Date")
_AT_ONCE = 5


class RestGmail:
    """Implements `ports.google.Gmail`."""

    def __init__(self, client: GoogleClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def search(self, query: str, *, limit: int = 20) -> Sequence[MailSummary]:
        asked = GoogleRequest(
            api=GMAIL, path=_MESSAGES, doing="search mail", params={"q": query, "maxResults": str(limit)}
        )
        found = [get_text(row, "id") for row in list_rows(await self._client.ask(asked), "messages")]
        rows: dict[str, MailSummary] = {}
        slots = anyio.CapacityLimiter(_AT_ONCE)

        async def load(mail: str) -> None:
            params = {"format": "metadata", "metadataHeaders": list(_SHOWN)}
            async with slots:
                row = await self._client.ask(
                    GoogleRequest(api=GMAIL, path=_path(mail), doing="read mail", params=params)
                )
            rows[mail] = _summarize(mail, row)

        async with anyio.create_task_group() as group:
            for mail in found:
                group.start_soon(load, mail)
        return [rows[mail] for mail in found]

    async def read(self, mail: str) -> ReceivedMail:
        asked = GoogleRequest(api=GMAIL, path=_path(mail), doing="read mail", params={"format": "raw"})
        found = await self._client.ask(asked)
        try:
            data = base64.urlsafe_b64decode(get_text(found, "raw") + "==")
        except (binascii.Error, ValueError) as error:
            raise Unavailable(
                "Google's answer cannot be read.", code="google_unavailable", why="The mail is not in base64."
            ) from error
        thread = get_text(found, "threadId")
        read = partial(read_mail, mail, data, is_read=_is_read(found), thread=thread)
        return await to_thread.run_sync(read, abandon_on_cancel=True)

    async def draft(self, mail: OutgoingMail) -> str:
        written = write_mail(mail, "", now=self._clock.now())
        message = {"raw": base64.urlsafe_b64encode(written.as_bytes()).decode()}
        if mail.answers is not None and mail.answers.thread:
            message["threadId"] = mail.answers.thread
        asked = GoogleRequest(method="POST", api=GMAIL, path=_DRAFTS, doing="write mail", json={"message": message})
        return get_text(await self._client.ask(asked), "id")

    async def send_draft(self, draft: str) -> bool:
        asked = GoogleRequest(method="POST", api=GMAIL, path=f"{_DRAFTS}/send", doing="send mail", json={"id": draft})
        try:
            await self._client.ask(asked)
        except NotFound:
            return False
        return True

    async def find_address(self) -> str:
        """Returns the address of the account."""
        asked = GoogleRequest(api=GMAIL, path="/users/me/profile", doing="look at the mailbox")
        return get_text(await self._client.ask(asked), "emailAddress")


def _path(mail: str) -> str:
    return f"{_MESSAGES}/{quote(mail, safe='')}"


def _is_read(row: Row) -> bool:
    return "UNREAD" not in (row.get("labelIds") or ())


def _summarize(mail: str, row: Row) -> MailSummary:
    heads = {
        get_text(each, "name").lower(): " ".join(get_text(each, "value").split())[:500]
        for each in list_rows(get_row(row, "payload"), "headers")
    }
    return MailSummary(
        id=mail,
        sender=heads.get("from", ""),
        subject=heads.get("subject", ""),
        date=heads.get("date", ""),
        is_read=_is_read(row),
    )
