"""Fetching from the public web without reaching what is private.

Implemented by `adapters/fetch`. Skills get it through their context and have no other way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Protocol

from denizen.domain.record import record

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@record
class FetchedPage:
    """A page as text. `url` is the last one after redirects; `text` is decoded and cut at the limit; `truncated`
    says whether it was cut.
    """

    url: str
    status: int
    media_type: str
    text: str
    size_bytes: int
    truncated: bool


@record
class DownloadedFile:
    """A file as bytes of any kind, cut at the limit; `truncated` says whether it was cut."""

    url: str
    status: int
    media_type: str
    data: bytes
    truncated: bool


@record(kw_only=True)
class FileValidators:
    """The marks of a version of a file (`ETag` and `Last-Modified`), for asking its server whether there is another."""

    etag: str = ""
    last_modified: str = ""


@record
class FileVersion:
    """The version of a file that there is now. Its status is 304, without data, for the one that was known."""

    file: DownloadedFile
    validators: FileValidators


class VersionFetcher(Protocol):
    """Fetches files that are there already only where they have changed."""

    async def fetch_version(
        self,
        url: str,
        known: FileValidators,
        *,
        accept: str = "",
        timeout_s: float = 60.0,
        max_bytes: int = 25_000_000,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> FileVersion:
        """Returns the file, with the checks and errors of `Fetcher.fetch`. `accept` are the media types wanted;
        `headers`, which may hold a secret, go to no other scheme, host or port that the address leads to.
        """
        ...


@record(kw_only=True)
class WebRequest:
    """One request to an API. `headers` may hold a secret; `body` is sent as it is."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: str = ""


class RequestSender(Protocol):
    """Sends requests of any method."""

    async def send(self, request: WebRequest, *, timeout_s: float = 30.0, max_bytes: int = 500_000) -> FetchedPage:
        """Sends the request once and returns the answer, with the checks and errors of `Fetcher.fetch`. A redirect is
        an answer and is not followed, so that headers reach no other server.
        """
        ...


class Downloader(Protocol):
    """Fetches files instead of text."""

    async def download(self, url: str, *, timeout_s: float = 60.0, max_bytes: int = 25_000_000) -> DownloadedFile:
        """Returns the file, with the checks and errors of `Fetcher.fetch`."""
        ...


class HostCheck(Protocol):
    """Tells what may be reached, for adapters that connect themselves."""

    async def check(self, host: str, port: int) -> Sequence[str]:
        """Returns the addresses of a host that may be reached at that port. Raises a DenizenError where none may."""
        ...

    def leads_back(self, own: tuple[str, int] | None, host: str, port: int, address: str) -> bool:
        """Returns whether a connection from `own` leads back to this machine, and may not be used."""
        ...


class Fetcher(Protocol):
    """Fetches text from the web."""

    async def fetch(
        self, url: str, *, timeout_s: float = 15.0, max_bytes: int = 2_000_000, headers: Mapping[str, str] = NO_HEADERS
    ) -> FetchedPage:
        """Sends a GET over http or https. Every address that a name resolves to is checked, and a checked one is used;
        each redirect is checked again. An HTTP error status is a result, not an error.

        `headers`, which may hold a secret, go only to servers that the operator named: a redirect to another scheme,
        host or port goes on without them, and no error repeats them.

        Raises NotAllowed for private, loopback, link-local and other special addresses, and for headers to a server
        that nobody named; InvalidInput for a malformed URL or header; NotFound for a host that nobody has; Unavailable
        for time-outs and network faults.
        The first two repeat nothing that a server sent, such as where a redirect leads.
        """
        ...

    async def aclose(self) -> None: ...
