"""Citations: where an answer says that something stands, whether that is so, and where a link to it leads. Pure.

Agents write `[docs/guide/start.md:12-18]` behind what they take from a document. Each is proved or it is taken out
(`engine/knowledge/citations` looks at the documents): the file exists, it has those lines, the agent has read them
(`evidence`), and numbers, names and quotations of the sentence stand there (`claims`). How they stand in a text is in
`cited_text`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import quote, urlsplit

from denizen.domain.record import record
from denizen.domain.snapshot import SnapshotPart
from denizen.domain.source import SourceKind

_CODE_HOST = re.compile(r"(?P<gitlab>gitlab)|github")


class CitationFault(StrEnum):
    """Why a citation is not proved."""

    NO_FILE = "there is no such file"
    NO_LINES = "the file has no such lines"
    TOO_MANY = "so many places or lines are no proof"
    NOT_READ = "the agent has not read it"
    NOT_SAID = "the quoted words do not stand there"
    OTHERWISE = "the sentence has a number or a name that does not stand there"
    ELSEWHERE = "what the sentence says stands in other lines of the file"


@record
class DocumentRef:
    """A place in a document. Without lines (0) it is all of it."""

    path: str
    first_line: int = 0
    last_line: int = 0

    def __str__(self) -> str:
        if not self.first_line:
            return self.path
        lines = f"{self.first_line}" if self.first_line == self.last_line else f"{self.first_line}-{self.last_line}"
        return f"{self.path}:{lines}"


@record
class Citation:
    """A place that an answer names. `source_id` and `revision` are empty for own files of agents; `link` leads to the
    lines as they were read, where the source is on the web. No `doubt`: it is proved.
    """

    ref: DocumentRef
    source_id: str = ""
    revision: str = ""
    link: str = ""
    doubt: CitationFault | None = None


def citation_link(part: SnapshotPart, ref: DocumentRef) -> str:
    """To these lines at the revision that was read; empty where the source cannot be linked to."""
    below = ref.path.removeprefix(f"{part.folder}/")
    match part.kind:
        case SourceKind.GIT:
            return _link_to_git(part, below, ref)
        case SourceKind.SITEMAP:
            return _link_to_page(part, below)
        case _:
            return _link_to_video(below) if part.kind == "youtube" else ""


def _link_to_git(part: SnapshotPart, below: str, ref: DocumentRef) -> str:
    """GitHub and GitLab, and servers that look like them; others have no address that all share."""
    parts = urlsplit(part.location)
    host, path = parts.hostname or "", parts.path.removesuffix(".git").strip("/")
    if parts.scheme != "https" or path.count("/") < 1:
        return ""
    # What was turned into text has another name in the repository, and other lines.
    original = below.removesuffix(".md") if below.endswith((".html.md", ".htm.md")) else below
    original = original.removesuffix(".txt") if original.endswith(".pdf.txt") else original
    file = quote("/".join(filter(None, (part.content_path, original))))
    lines = f"#L{ref.first_line}-L{ref.last_line}" if ref.first_line and original == below else ""
    if original.endswith((".md", ".mdx")) and lines:
        lines = f"?plain=1{lines}"  # else the page shows no lines
    found = _CODE_HOST.search(host)
    if found is None:
        return ""
    if found["gitlab"]:
        path, lines = f"{path}/-", lines.replace("-L", "-")
    return f"https://{parts.netloc}/{path}/blob/{part.revision}/{file}{lines}"


def _link_to_page(part: SnapshotPart, below: str) -> str:
    parts = urlsplit(part.location)
    stem = below.removesuffix(".md").removesuffix(".html")
    page = "/".join(filter(None, (part.content_path, "" if stem == "index" else stem)))
    return f"https://{parts.netloc}/{quote(page)}"


def _link_to_video(below: str) -> str:
    name = below.rsplit("/", 1)[-1]
    return f"https://youtu.be/{name[:11]}" if re.match(r"[A-Za-z0-9_-]{11}-", name) else ""
