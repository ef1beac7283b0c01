"""Requests of WebDAV and CalDAV (RFC 4918, RFC 4791): deadlines, bounds of answers, errors, and the XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree as ET

from denizen import __version__
from denizen.domain.errors import Conflict, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.domain.record import record
from denizen.ports.calendar import CalDavLogin

TIMEOUT_S = 20.0
MAX_BYTES = 10_000_000
MAX_REDIRECTS = 4
DAV, CAL = "{DAV:}", "{urn:ietf:params:xml:ns:caldav}"
_NAMES = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'


@record(kw_only=True)
class DavRequest:
    """`doing` completes "The calendar server did not let Denizen ..."."""

    method: str
    url: str
    doing: str
    body: str = ""
    headers: Mapping[str, str] | None = None


@record
class DavAnswer:
    """An answer, with the address that gave it after redirects."""

    url: str
    etag: str
    body: bytes


@record
class DavRow:
    """One resource of a list: its address and its properties."""

    url: str
    properties: ET.Element

    def find_text(self, path: str) -> str:
        return (self.properties.findtext(path) or "").strip()

    def find_address(self, name: str) -> str:
        """Returns the address in a property; empty where there is none."""
        href = self.find_text(f"{name}/{DAV}href")
        return urljoin(self.url, href) if href else ""


class DavClient:
    """Asks in the name of one account. Holds nothing open between requests.

    The password goes to the server of the login only, and by TLS to hosts of the same domain, to which some providers
    lead (RFC 6764).
    """

    def __init__(self, login: CalDavLogin) -> None:
        self._login = login

    async def list_properties(self, url: str, doing: str, names: Sequence[str], *, depth: int) -> list[DavRow]:
        """Returns the resource, with `depth` 1 also those in it. `names` are written with the prefixes `d:` and
        `c:`.
        """
        wanted = "".join(f"<{name}/>" for name in names)
        body = f'<?xml version="1.0" encoding="utf-8"?><d:propfind {_NAMES}><d:prop>{wanted}</d:prop></d:propfind>'
        return await self.read_rows("PROPFIND", url, doing, body, depth=depth)

    async def read_rows(self, method: str, url: str, doing: str, body: str, *, depth: int) -> list[DavRow]:
        """Returns the resources of a multi-status answer, each with the properties that it has."""
        headers = {"content-type": "application/xml; charset=utf-8", "depth": str(depth)}
        answer = await self.send(DavRequest(method=method, url=url, doing=doing, body=body, headers=headers))
        try:
            text = answer.body.decode("utf-8-sig")  # in another encoding, a document type would not be seen here
            if "<!DOCTYPE" in text:
                raise ValueError("it declares a document type")
            root = ET.fromstring(text)  # noqa: S314 - no document type, so no entities
        except (ET.ParseError, ValueError) as error:
            raise _unreachable(doing, f"Its answer is no XML: {error}") from error
        return [
            DavRow(urljoin(answer.url, (response.findtext(f"{DAV}href") or "").strip()), properties)
            for response in root.iter(f"{DAV}response")
            for found in response.iter(f"{DAV}propstat")
            if "200" in (found.findtext(f"{DAV}status") or "").split()
            for properties in found.iter(f"{DAV}prop")
        ]

    async def send(self, request: DavRequest) -> DavAnswer:
        """Raises NeedsAttention, NotAllowed, NotFound, Conflict, InvalidInput, and Unavailable."""
        url, left = request.url, MAX_REDIRECTS
        status, headers, body = await self._try(request, url)
        while status in {301, 302, 307, 308} and "location" in headers and left:
            url, left = urljoin(url, headers["location"]), left - 1
            status, headers, body = await self._try(request, url)
        if status >= 300:
            raise explain_error(request.doing, status)
        return DavAnswer(url, headers.get("etag", ""), body)

    async def _try(self, request: DavRequest, url: str) -> tuple[int, Mapping[str, str], bytes]:
        import httpx2

        self._check_host(url)
        data = bytearray()
        headers = {"user-agent": f"Denizen/{__version__}", **(request.headers or {})}
        try:
            async with (
                httpx2.AsyncClient(auth=(self._login.user, self._login.password), timeout=TIMEOUT_S) as http,
                http.stream(request.method, url, content=request.body.encode(), headers=headers) as response,
            ):
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > MAX_BYTES:
                        raise InvalidInput(
                            f"What the calendar has is larger than {MAX_BYTES // 1_000_000} MB.",
                            code="calendar_large",
                            fix="Ask for less time.",
                        )
                return response.status_code, response.headers, bytes(data)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable(request.doing, type(error).__name__) from error

    def _check_host(self, url: str) -> None:
        mine, other = urlsplit(self._login.url), urlsplit(url)
        if (mine.scheme, mine.netloc) == (other.scheme, other.netloc):
            return
        if other.scheme == "https" and is_same_domain(mine.hostname or "", other.hostname or ""):
            return
        raise NotAllowed(
            "The calendar server leads to another one.",
            code="calendar_host",
            why=f"It leads to {other.scheme}://{other.hostname}.",
            fix="Write that server as tools.calendar.url if the password may go there.",
        )


def is_same_domain(mine: str, other: str) -> bool:
    """Returns whether `other` is the host, or one beside or below it: as caldav.example.org and p1.example.org."""
    first, _, rest = mine.partition(".")
    parent = rest if "." in rest and not mine.replace(".", "").isdecimal() else mine
    return bool(first) and (other == mine or other.endswith(f".{parent}"))


def explain_error(doing: str, status: int) -> Exception:
    """Returns what an answer with this status means."""
    said, why = f"The calendar server did not let Denizen {doing}.", f"HTTP {status}"
    if status == 401:
        fix = "Check tools.calendar.user and password; many providers want a password for programs."
        return NeedsAttention(said, code="calendar_sign_in", why=why, fix=fix)
    if status == 403:
        return NotAllowed(said, code="calendar_forbidden", why=why)
    if status in {404, 410}:
        return NotFound("There is no such calendar or event.", code="calendar_not_found", why=why)
    if status in {409, 412}:
        return Conflict("It was changed meanwhile.", code="calendar_conflict", why=why, fix="List the events again.")
    return InvalidInput(said, code="calendar_rejected", why=why) if status < 500 else _unreachable(doing, why)


def _unreachable(doing: str, why: str) -> Unavailable:
    return Unavailable(
        f"The calendar server could not be reached to {doing}.",
        code="calendar_unavailable",
        why=why,
        fix="Check tools.calendar.url and the network, and try again later.",
    )
