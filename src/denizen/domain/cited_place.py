"""Places of documents as models write them, read into one normal form. Pure.

A path has a folder and the ending of a document (`docs/a.md`). Its lines stand behind it: `:3`, `:3-9`, `:3,5`,
`#L120-L123`, `, lines 3-9`, `(lines 3-9)`, with the word in several languages. `cited_text` finds the brackets, links
and code around places, and decides which of them count.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from denizen.domain.citation import DocumentRef
from denizen.domain.record import record
from denizen.domain.source import KEPT_SUFFIXES, is_plain_path

ROOTS = frozenset({"docs", "own", "shared", "youtube", "archive"})
"""The folders that all documents are in: a path that begins with one is meant as a document's."""
ENDINGS = KEPT_SUFFIXES | {".csv", ".markdown"}
MAX_PATH_CHARS = 400
MAX_SPEC_CHARS = 80
"""How far behind a path its lines are looked for."""
MAX_REFS = 20

_DELIMITERS = r"\s<>\"'`|()\[\]{}【】［］〔〕（）《》「」“”„«»，。；：、！？,;:#?!*†@§"
RUN = re.compile(rf"[^{_DELIMITERS}]+")
"""The characters of a path in the midst of a text."""
_ENDED = re.compile(r".*\.[A-Za-z][A-Za-z0-9]{0,7}(?![A-Za-z0-9])", re.DOTALL)
_SPACED = re.compile(rf"[^{_DELIMITERS}]+(?: [^{_DELIMITERS}/\\]+?){{1,6}}\.[A-Za-z][A-Za-z0-9]{{0,7}}(?![A-Za-z0-9])")

_SPAN = r"L?\d{1,7}(?: ?(?:[-\u2010-\u2015~]|\.\.) ?L?\d{1,7})?(?!\d)"
_LINE = (
    r"(?i:lines?|ll?n?\.?|zeilen?|z\.|lignes?|l[ií]neas?|righ[ea]|linhas?|regels?|rad(?:er)?|строк[аиу]?|стр\.?|第|行)"
)
_AND = r" ?(?:,|;|&|\+|、|and|und|et|y|e|и|en) ?"
_LINES = re.compile(
    r"(?:\?[A-Za-z0-9_=&.%-]{1,60})?(?:"
    rf"(?:[:：@§†]|#)第?(?P<tight>{_SPAN}(?:,{_SPAN}|, L\d{{1,7}})*)(?::\d{{1,5}}(?!\d))?行?"
    rf"|,? ?[(（]?(?:(?:on|at|in|auf|auf den|à la|en la) )?{_LINE} ?(?P<told>{_SPAN}(?:{_AND}{_SPAN})*)行?[)）]?"
    r"| ?\((?P<ranged>\d{1,7} ?[-\u2010-\u2015] ?\d{1,7})\)"
    r"|#[A-Za-z0-9_%.-]{1,100})"
)
_SPANS = re.compile(r"L?(\d{1,7})(?: ?(?:[-\u2010-\u2015~]|\.\.) ?L?(\d{1,7}))?")
_ONLY_SPANS = re.compile(rf"(?:{_LINE} ?)?{_SPAN}行?")

_LABEL = re.compile(
    r"\s*(?:\^?\d{0,3}\^?\s*[:.,)†-]*\s*)(?:(?i:sources?|src|refs?|references?|citations?|cited?|files?|docs?(?=\s*:)|from"
    r"|via|per|see(?: also)?|cf\.?|quellen?|siehe(?: auch)?|vgl\.?|aus|laut|fuentes?|v[eé]ase|ver|voir|bron(?:nen)?|zie"
    r"|font[ei]s?|vedi|veja|источники?|см\.?|来源|参见|參見|出典|参照|출처)(?![A-Za-z0-9/.])\s*[:：]?\s*)*"
)
_BETWEEN = re.compile(r"\s*(?:[;；、|&]|,|\s(?:and|und|et|y|e|и|sowie|en|as well as)\s)\s*")
_WHOLE = re.compile(r"(?P<path>[^\s:#;,|?@†§][^:#;|?@†§\n]*?\.[A-Za-z][A-Za-z0-9]{0,7})(?P<lines>(?![A-Za-z0-9/]).*)?")
_TWO = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}[\s,].*[/.]")
_TAKEN_OFF = str.maketrans("", "", '`*"“”„«»<>\u200b\u2060\ufeff')


@record
class CitedPlace:
    """The places that a piece of text names, and where it ends. `is_guess`: only a document of that name would show
    that a path is meant.
    """

    refs: tuple[DocumentRef, ...]
    end: int = 0
    is_guess: bool = False

    @property
    def has_lines(self) -> bool:
        return all(ref.first_line for ref in self.refs)

    @property
    def is_rooted(self) -> bool:
        """Whether it can only be meant as a document."""
        return all(ref.path.partition("/")[0] in ROOTS for ref in self.refs)


def read_place(text: str, start: int, end: int) -> CitedPlace | None:
    """Reads the place that begins at `start`; `end` bounds the text in which its lines are looked for."""
    run = RUN.match(text, start, min(end, start + MAX_PATH_CHARS))
    ended = _ENDED.match(run[0]) if run else None
    path = _read_path(ended[0]) if ended else ""
    if not path and ended is None:
        spaced = _SPACED.match(text, start, min(end, start + MAX_PATH_CHARS))
        path, written = (_read_path(spaced[0]), spaced[0]) if spaced else ("", "")
    else:
        written = ended[0] if ended else ""
    if not path:
        return None
    behind = start + len(written)
    refs, length = read_lines(path, text[behind : min(end, behind + MAX_SPEC_CHARS)])
    return CitedPlace(refs, behind + length, is_guess=ended is None)


def read_name(text: str, start: int, end: int) -> CitedPlace | None:
    """Reads a file's name without its folder that has lines behind it."""
    run = RUN.match(text, start, min(end, start + MAX_PATH_CHARS))
    name = run[0] if run else ""
    if "/" in name or not _has_ending(name):
        return None
    refs, length = read_lines(name, text[start + len(name) : min(end, start + len(name) + MAX_SPEC_CHARS)])
    return CitedPlace(refs, start + len(name) + length, is_guess=True) if refs[0].first_line else None


def may_be_path(run: str) -> bool:
    """Whether a run of characters is a path, or the beginning of one with blanks in it."""
    ended = _ENDED.match(run)
    return bool(_read_path(ended[0])) if ended else run.lstrip("_~./").partition("/")[0] in ROOTS


def read_whole(inside: str) -> CitedPlace | None:
    """Reads a text that is nothing but places, perhaps behind a label such as "Source:"."""
    plain = inside.translate(_TAKEN_OFF).strip().strip("\\").strip()
    label = _LABEL.match(plain)
    plain = plain[label.end() :].rstrip(" .,;") if label else plain
    if not plain or len(plain) > 600:
        return None
    if not _TWO.search(plain):
        single = _read_piece(plain, ())
        if single:
            return CitedPlace(single)
    refs: tuple[DocumentRef, ...] = ()
    for piece in _BETWEEN.split(plain):
        found = _read_piece(piece.strip(), refs)
        if not found:
            return None
        if refs and found[0].path == refs[-1].path and not refs[-1].first_line and _ONLY_SPANS.fullmatch(piece.strip()):
            refs = refs[:-1]  # `docs/a.md, lines 3-4`
        refs = (*refs, *found)
    return CitedPlace(refs[:MAX_REFS]) if refs else None


def _read_piece(piece: str, before: tuple[DocumentRef, ...]) -> tuple[DocumentRef, ...]:
    if before and _ONLY_SPANS.fullmatch(piece):
        return _make_refs(before[-1].path, piece)
    found = _WHOLE.fullmatch(piece)
    path = _read_path(found["path"]) if found else ""
    if found is None or not (path or ("/" not in found["path"] and _has_ending(found["path"]))):
        return ()
    lines = (found["lines"] or "").strip()
    spec = _LINES.fullmatch(lines) or _LINES.fullmatch(f" {lines}")
    if lines and not spec and not _ONLY_SPANS.fullmatch(lines.strip("()（）:： ")):
        return ()
    refs = _make_refs(path or found["path"], _spans(spec) if spec else lines)
    return refs if path or refs[0].first_line else ()


def _read_path(text: str) -> str:
    """Returns the path below the top folder; empty where the text cannot be one."""
    path = unquote(text) if "%" in text else text
    path = path.replace("\\_", "_").replace("\\", "/").lstrip("_~").removeprefix("./")
    parts = path.split("/")
    root = next((at for at, part in enumerate(parts[:-1]) if part in ROOTS), 0)
    if root and "." in parts[0].strip("."):
        return ""  # an address on the web
    path = "/".join(parts[root:])
    is_path = "/" in path and is_plain_path(path) and re.match(r"[A-Za-z0-9_.-]+/", path)
    return path if is_path and (_has_ending(path) or path.partition("/")[0] in ROOTS) else ""


def _has_ending(path: str) -> bool:
    return path[path.rfind(".") :].lower() in ENDINGS if "." in path else False


def read_lines(path: str, behind: str) -> tuple[tuple[DocumentRef, ...], int]:
    """Returns the places in a document that the beginning of a text names, and where that ends."""
    found = _LINES.match(behind.partition("\n")[0])
    return _make_refs(path, _spans(found) if found else ""), found.end() if found else 0


def _spans(found: re.Match[str]) -> str:
    return found["tight"] or found["told"] or found["ranged"] or ""


def _make_refs(path: str, spans: str) -> tuple[DocumentRef, ...]:
    refs: list[DocumentRef] = []
    for first, last in _SPANS.findall(spans)[:MAX_REFS]:
        refs.append(DocumentRef(path, int(first), max(int(first), int(last or first))))
    return tuple(ref for ref in refs if ref.first_line) or (DocumentRef(path),)
