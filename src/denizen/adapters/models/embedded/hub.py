"""Downloads a weights file from the model hub, with resume.

A broken transfer continues where it stopped, within one call and across restarts (the `.part` file stays). The caller
decides whether the bytes are right, from the sha256 that `download` returns.
"""

import hashlib
from pathlib import Path
from typing import IO

import anyio
import httpx2
from anyio import to_thread

from denizen.adapters.models.embedded.catalogue import WeightsFile
from denizen.adapters.models.embedded.progress import LoadProgress, ReportLoadProgress, Tick, run_in_thread
from denizen.adapters.models.embedded.stored import hash_file, storing
from denizen.domain.errors import Unavailable

_TIMEOUT = httpx2.Timeout(30, connect=15)
_HOPELESS_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.25
_WORTHWHILE_BYTES = 1 << 20
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class _Transfer:
    """The state of one download: what is on disk, and its sha256 so far."""

    def __init__(self, part: Path) -> None:
        self.part = part
        self.digest = hashlib.sha256()
        self.done_bytes = 0

    def stored_bytes(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.digest = hashlib.sha256()
        self.done_bytes = 0

    def rehash(self, tick: Tick) -> None:
        self.done_bytes = hash_file(self.part, self.digest.update, tick)

    def add(self, file: IO[bytes], chunk: bytes) -> None:
        self.digest.update(chunk)
        file.write(chunk)
        self.done_bytes += len(chunk)


async def download(wanted: WeightsFile, part: Path, hub_url: str, report: ReportLoadProgress) -> str:
    """Downloads the file into `part` and returns the sha256 of what arrived.

    Attempts that bring next to nothing are limited; others are not. Raises Unavailable when the hub refuses or cannot
    be reached (`part` stays), NeedsAttention when the disk is full.
    """
    url = f"{hub_url.rstrip('/')}/{wanted.hub.repo}/resolve/{wanted.hub.revision}/{wanted.hub.file}"
    transfer = await _resumed(wanted, part, report)
    failures = 0
    async with httpx2.AsyncClient(follow_redirects=True, timeout=_TIMEOUT) as client:
        while transfer.done_bytes < wanted.size_bytes:
            before = transfer.done_bytes
            try:
                await _attempt(client, url, transfer, wanted, report)
            except httpx2.TransportError as error:
                failures = 0 if transfer.done_bytes - before >= _WORTHWHILE_BYTES else failures + 1
                if failures >= _HOPELESS_ATTEMPTS:
                    raise _unreachable(wanted, url, str(error) or type(error).__name__) from error
                await anyio.sleep(_FIRST_PAUSE_S * 2**failures)
    return transfer.digest.hexdigest()


async def _resumed(wanted: WeightsFile, part: Path, report: ReportLoadProgress) -> _Transfer:
    transfer = _Transfer(part)
    with storing(part.parent):
        size = transfer.stored_bytes()
        if size > wanted.size_bytes:
            transfer.forget()
        elif size:
            await run_in_thread(transfer.rehash, f"checking the part of {wanted.title} that is here", size, report)
    return transfer


async def _attempt(
    client: httpx2.AsyncClient, url: str, transfer: _Transfer, wanted: WeightsFile, report: ReportLoadProgress
) -> None:
    """Makes one request. Raises TransportError for what is worth another one, Unavailable for what is not."""
    headers = {"Accept-Encoding": "identity"}
    if transfer.done_bytes:
        headers["Range"] = f"bytes={transfer.done_bytes}-"
    async with client.stream("GET", url, headers=headers) as response:
        if response.status_code in _TRY_AGAIN:
            raise httpx2.RemoteProtocolError(f"the hub answered {response.status_code}", request=response.request)
        if response.status_code == 206 and not _continues(response, transfer.done_bytes):
            raise _unreachable(wanted, url, "the hub sent another range than was asked for")
        if response.status_code not in {200, 206}:
            raise _unreachable(wanted, url, f"the hub answered {response.status_code}")
        with storing(transfer.part.parent):
            if response.status_code == 200:
                transfer.forget()
            await _receive(response, transfer, wanted, report)
    if transfer.done_bytes < wanted.size_bytes:
        raise httpx2.RemoteProtocolError("the hub closed the connection early", request=response.request)


async def _receive(
    response: httpx2.Response, transfer: _Transfer, wanted: WeightsFile, report: ReportLoadProgress
) -> None:
    with transfer.part.open("ab") as file:
        async for chunk in response.aiter_raw():
            await to_thread.run_sync(transfer.add, file, chunk)
            report(LoadProgress(f"downloading {wanted.title}", transfer.done_bytes, wanted.size_bytes))
            if transfer.done_bytes > wanted.size_bytes:
                return  # not our file; its sha256 will say so


def _continues(response: httpx2.Response, start: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {start}-")


def _unreachable(wanted: WeightsFile, url: str, why: str) -> Unavailable:
    return Unavailable(
        f"{wanted.title} could not be downloaded.",
        code="weights_download_failed",
        why=f"{why} ({url})",
        fix="Try again later; the download goes on where it stopped.",
    )
