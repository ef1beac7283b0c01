"""The names under which a server's tools are offered: `<prefix>_<tool>`, in a form that every model accepts. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

MAX_CHARS = 64
"""The longest name that the strictest provider takes."""
_MARK_CHARS = 6
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


def plan_names(prefix: str, tools: Sequence[str]) -> dict[str, str]:
    """The name of each tool. The same tool of the same server has the same name always, whatever stands beside it in
    the list; where two would have the same, the one that had to be changed is marked with a digest of its own name.
    """
    raw = {tool: f"{prefix}_{tool}" if prefix else tool for tool in tools}
    plain = {tool: sanitise(name) for tool, name in raw.items()}
    often = Counter(plain.values())
    return {tool: name if often[name] == 1 or name == raw[tool] else _marked(raw[tool]) for tool, name in plain.items()}


def sanitise(name: str) -> str:
    """Other characters become `_`; a name that is too long is cut and marked."""
    clean = _FOREIGN.sub("_", name)
    return clean if len(clean) <= MAX_CHARS else _marked(name)


def _marked(name: str) -> str:
    mark = sha256(name.encode()).hexdigest()[:_MARK_CHARS]
    return f"{_FOREIGN.sub('_', name)[: MAX_CHARS - _MARK_CHARS - 1]}_{mark}"
