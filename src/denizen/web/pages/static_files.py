"""The files that pages load: scripts, the icon, what makes an app of the page.

They are in memory from the first page on, all of one moment: an upgrade in place never mixes old and new.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from denizen.domain.record import record

_FOLDER = Path(__file__).parents[1] / "static"
_DIGEST = re.compile(r"[0-9a-f]{16}")


@record
class StaticFile:
    """A file as browsers get it. `tag` is its ETag."""

    content: bytes
    media_type: str
    tag: str


@record
class StaticFileSet:
    """All files by their paths below `/static`. `digest` is that of all of them."""

    digest: str
    files: Mapping[str, StaticFile]

    @property
    def address(self) -> str:
        """The address of the folder in a page. Scripts that import others by relative paths keep it."""
        return f"/static/{self.digest}"


@cache
def load_static_files() -> StaticFileSet:
    paths = sorted(path for path in _FOLDER.rglob("*") if path.is_file())
    files = {path.relative_to(_FOLDER).as_posix(): _load_file(path) for path in paths}
    return StaticFileSet(digest_files(files), files)


def digest_files(files: Mapping[str, StaticFile]) -> str:
    return _hash("".join(f"{name} {file.tag}\n" for name, file in files.items()).encode())


def _load_file(path: Path) -> StaticFile:
    content = path.read_bytes()
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return StaticFile(content, media_type, f'"{_hash(content)}"')


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class StaticPageFiles(StaticFiles):
    """Serves `DIGEST/PATH`, which browsers keep for good, and `PATH`, which they check each time. So they do with the
    digest of another version, which a page of before an upgrade still has.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405)
        known = load_static_files()
        digest, _, rest = path.partition("/")
        file = known.files.get(rest if _DIGEST.fullmatch(digest) else path)
        if file is None:
            raise HTTPException(404)
        caching = "public, max-age=31536000, immutable" if digest == known.digest else "no-cache"
        headers = {"Cache-Control": caching, "ETag": file.tag}
        if self.is_not_modified(Headers(headers), Headers(scope=scope)):
            return NotModifiedResponse(Headers(headers))
        return Response(file.content, headers=headers, media_type=file.media_type)
