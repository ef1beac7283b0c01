"""Secrets that stand in the file where the shape of the settings cannot tell: headers, options of skills, addresses.

The typed secrets (`api_key`, `key`, `token` of an account) are checked by their own type. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from denizen.app.settings.document import Document
from denizen.app.settings.explain import literal_secret
from denizen.app.settings.interpolation import references
from denizen.app.settings.problem import KeyPath, Problem
from denizen.domain.json import Json

_SECRET_KEY = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|token|secret|password|passwd"
    r"|authorization|credentials?|cookie)|key",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/@\s:]*:(?P<password>[^/@\s]+)@", re.IGNORECASE)
_WELL_KNOWN = re.compile(
    r"\b(?:sk-[\w-]{16,}|xai-\w{16,}|gsk_\w{16,}|gh[opsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,})"
)
"""How the keys of well-known services look."""
_TYPED = re.compile(
    r"models\.providers\.[^.]*\.api_key|server\.api_keys\.\d+\.key|channels\.discord\.accounts\.[^.]*(?:\.token)?"
    r"|channels\.github\.accounts\.[^.]*(?:\.(?:token|private_key|webhook_secret))?"
)


def find_plain_secrets(document: Document) -> Iterator[Problem]:
    """A problem for each text that stands where a secret belongs, that looks like one, or that holds a password."""
    for path, text in _texts(document.tree, ()):
        if _TYPED.fullmatch(".".join(str(part) for part in path)):
            continue
        if _is_plain_secret(path, text) or _WELL_KNOWN.search(text):
            yield document.problem(path, *literal_secret(path))
        elif _has_plain_password(text):
            yield document.problem(path, *literal_secret(path, noun="password"))


def _is_plain_secret(path: KeyPath, text: str) -> bool:
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    if not text or path[0] == "gate" or not _SECRET_KEY.fullmatch(key):  # the gate's keys are names of arguments
        return False
    found = references(text)
    return not found or any(reference.default for reference in found)


def _has_plain_password(text: str) -> bool:
    found = _PASSWORD_IN_URL.search(text)
    return found is not None and not references(found["password"])


def _texts(node: Json, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, Mapping):
        for key, child in node.items():
            yield from _texts(child, (*path, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _texts(child, (*path, index))
