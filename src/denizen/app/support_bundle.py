"""A report for whoever helps with an installation: findings, versions, the configuration and the end of the log.

It has no messages, memories, documents or names of people, and no secret: values that the configuration and
`secrets.env` name are masked, and so is whatever looks like a secret. `denizen doctor --bundle FILE` writes it.
"""

from __future__ import annotations

import importlib.metadata
import io
import platform
import re
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from denizen import __version__
from denizen.adapters.log_files import LogFiles
from denizen.app.settings import CONFIG_FILE
from denizen.domain.errors import DenizenError, NeedsAttention
from denizen.domain.log import LogFilter, encode_entry

LOG_ENTRIES = 2000
MASK = "***"

Mask = Callable[[str], str]

_SECRETS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), MASK),
    (re.compile(r"AGE-SECRET-KEY-1[0-9A-Z]+"), MASK),
    (re.compile(r"(?P<keep>\b[a-z][a-z0-9+.-]*://[^\s:/@\"']*:)[^\s@\"']+(?=@)", re.IGNORECASE), rf"\g<keep>{MASK}"),
    (re.compile(r"(?P<keep>\bhttps?://)[^\s:/@\"']+(?=@)", re.IGNORECASE), rf"\g<keep>{MASK}"),
    (re.compile(r"(?P<keep>\b(?:bearer|basic|bot)\s+)[\w.~+/=-]{8,}", re.IGNORECASE), rf"\g<keep>{MASK}"),
    (re.compile(r"\b(?:sk|rk|pk|xox[a-z]|gh[a-z]|glpat|github_pat|hf|dnz|AIza|ya29|AKIA|ASIA)[-_.]?[\w-]{12,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), MASK),
    (re.compile(r"\b[\w-]{23,30}\.[\w-]{6,7}\.[\w-]{27,}"), MASK),
    (re.compile(r"(?P<keep>/(?:api/)?webhooks/\d+/)[\w-]+"), rf"\g<keep>{MASK}"),
    (
        re.compile(
            r"(?P<keep>[\w-]*(?:password|passwd|secret|token|api[_-]?key|credential|\bkey|\bdsn|authorization|cookie)s?"
            r"[\"']?\s*[:=]\s*)(?!\s*[\"']?\$\{)(?P<quote>[\"']?)[^\s\"',}\]]{6,}(?P=quote)",
            re.IGNORECASE,
        ),
        rf"\g<keep>{MASK}",
    ),
)
"""Shapes of secrets, with what stands in their place. References such as `${NAME}` stay."""


def mask_shapes(text: str) -> str:
    """Returns the text without what looks like a secret: keys and tokens of well-known shapes, passwords in addresses,
    and values of fields that are called so.
    """
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


async def build_bundle(home: Path, findings: str, mask: Mask) -> Mapping[str, str]:
    """Returns the files of the report, by name, all masked."""
    config = home / CONFIG_FILE
    files = {
        "doctor.txt": findings,
        "versions.txt": _list_versions(),
        "home.txt": _list_sizes(home),
        CONFIG_FILE: config.read_text(encoding="utf-8", errors="replace") if config.is_file() else "(none)\n",
        "log.jsonl": await _read_log(home / "logs"),
    }
    return {name: mask_shapes(mask(text)) for name, text in files.items()}


def write_bundle(file: Path, files: Mapping[str, str]) -> None:
    """Writes them as a tar.gz that only its owner reads. Raises NeedsAttention when it cannot."""
    try:
        file.touch(mode=0o600, exist_ok=False)
        with tarfile.open(file, "w:gz") as archive:
            for name, text in files.items():
                data = text.encode()
                about = tarfile.TarInfo(f"denizen-report/{name}")
                about.size = len(data)
                archive.addfile(about, io.BytesIO(data))
    except OSError as error:
        raise NeedsAttention(
            f"The report {file} cannot be written.",
            code="bundle_not_writable",
            why=error.strerror or type(error).__name__,
            fix="Name a file that is not there yet, in a folder that can be written.",
        ) from error


def _list_versions() -> str:
    packages = sorted({f"{each.name}=={each.version}" for each in importlib.metadata.distributions()}, key=str.lower)
    head = [f"denizen {__version__}", f"Python {sys.version}", f"{platform.system()} {platform.release()}"]
    return "\n".join([*head, platform.machine(), "", *packages]) + "\n"


def _list_sizes(home: Path) -> str:
    """Sizes of what stands in the home folder itself; what is in its folders has names that people gave."""
    rows = [f"{each.stat().st_size:>14} {each.name}" for each in sorted(home.glob("*")) if each.is_file()]
    return "\n".join(rows) + "\n"


async def _read_log(folder: Path) -> str:
    try:
        entries = await LogFiles(folder).search(LogFilter(), limit=LOG_ENTRIES)
    except DenizenError as error:
        return f"{error.explain()}\n"
    # What a workflow writes into the log may quote people.
    told = [each for each in reversed(entries) if not {"workflow", "node"} <= each.fields.keys()]
    return "".join(f"{encode_entry(each)}\n" for each in told)
