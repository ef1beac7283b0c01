"""Secret values: from the environment, then from `secrets.env` in the home folder.

The configuration holds references only (`SecretRef`). Values are looked up at the moment of use, and masked in texts
that people or logs will see.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import quote

from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.record import record

SECRETS_FILE = "secrets.env"
MASK = "***"
MASK_MIN_CHARS = 6
"""The least length of a value that is masked. Shorter ones would take ordinary words out of every text."""
HINT_MIN_CHARS = 16
"""The least length of a value that gives a hint. Of a shorter one, four characters at each end would be most."""

NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_|$)", re.IGNORECASE)


@record
class SecretRef:
    """A secret of the configuration, by the name of its variable. An `optional` one may be unset, which means none."""

    name: str
    optional: bool = False

    @property
    def written(self) -> str:
        """The reference as the configuration file has it."""
        return f"${{{self.name}:-}}" if self.optional else f"${{{self.name}}}"


@record
class FileSecrets:
    """The secrets of one moment. `variables` is the environment over `secrets.env`; `known` are the values to mask.
    `readable_by_others` tells that `secrets.env` has a mode wider than 0600.
    """

    home: Path
    variables: Mapping[str, str] = field(repr=False)
    known: frozenset[str] = field(repr=False)
    readable_by_others: bool = False

    def find(self, name: str) -> str | None:
        """Returns the value, or None when it is unset or empty."""
        return self.variables.get(name) or None

    def get(self, name: str) -> str:
        """Returns the value. Raises NeedsAttention, naming the variable and never a value, when it is unset or
        empty.
        """
        value = self.find(name)
        if value is None:
            raise NeedsAttention(
                f"The secret {name} is not set.",
                code="secret_missing",
                why=f"Neither the environment nor {self.home / SECRETS_FILE} has a value for {name}.",
                fix=f"Add a line {name}=... to {self.home / SECRETS_FILE}, or set it in the environment.",
            )
        return value

    def resolve(self, ref: SecretRef | None) -> str:
        """Returns the value behind a reference; empty for none and for an optional one that is unset."""
        if ref is None:
            return ""
        return (self.find(ref.name) or "") if ref.optional else self.get(ref.name)

    def hint(self, name: str) -> str:
        """Returns enough of a value to tell two apart, never more than `first4...last4`; empty when unset."""
        value = self.find(name)
        if value is None:
            return ""
        return f"{value[:4]}...{value[-4:]}" if len(value) >= HINT_MIN_CHARS else MASK

    def mask(self, text: str) -> str:
        """Returns the text with every known value replaced by `***`, also where JSON, a URL or Python escapes it."""
        spans = sorted(_spans(text, self.known))
        pieces: list[str] = []
        end = 0
        for start, stop in spans:
            if start >= end:
                pieces += (text[end:start], MASK)
            end = max(end, stop)
        return "".join((*pieces, text[end:]))

    def knowing(self, names: Iterable[str]) -> FileSecrets:
        """Returns the same secrets, with the values of these variables masked too."""
        values = (self.variables.get(name, "") for name in names)
        return FileSecrets(self.home, self.variables, self.known | _maskable(values), self.readable_by_others)


def load_secrets(home: Path, environment: Mapping[str, str]) -> FileSecrets:
    """Reads `secrets.env` when there is one. Known from the start are its values and those variables of the
    environment whose names say that they are secret. Raises InvalidInput for a line that is not KEY=VALUE.
    """
    file = home / SECRETS_FILE
    try:
        text = file.read_text(encoding="utf-8-sig")
        mode = file.stat().st_mode
    except FileNotFoundError:
        text, mode = "", 0
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{file} cannot be read.",
            code="config_invalid",
            why=type(error).__name__,
            fix="Make it a UTF-8 text file that the user who runs Denizen may read.",
        ) from None
    stored = parse_secrets(text, file)
    named = (value for name, value in environment.items() if _SECRET_NAME.search(name))
    return FileSecrets(
        home=home,
        variables={**stored, **{name: value for name, value in environment.items() if value}},
        known=_maskable((*stored.values(), *named)),
        readable_by_others=bool(mode & (stat.S_IRWXG | stat.S_IRWXO)),
    )


def parse_secrets(text: str, file: Path) -> dict[str, str]:
    """Parses KEY=VALUE lines; a `#` at the start of a line makes it a comment; one pair of quotes around a value is
    removed.

    Raises InvalidInput with file and line, never with the content of the line.
    """
    values: dict[str, str] = {}
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not NAME_PATTERN.fullmatch(name):
            raise InvalidInput(
                f"{file}:{number}: this line is not KEY=VALUE.",
                code="config_invalid",
                fix="Write NAME=value, with a name of letters, digits and underscores; comments start with #.",
            )
        values[name] = _unquoted(value.strip())
    return values


def put_secret(text: str, name: str, value: str) -> str:
    """Returns the text of a secrets file with one value set; all other lines stay. Raises InvalidInput for a value that
    does not fit on a line.
    """
    if not NAME_PATTERN.fullmatch(name) or not value or not value.isprintable():
        raise InvalidInput(
            f"The secret {name!r} cannot be stored.",
            code="secret_unusable",
            why="A name has letters, digits and underscores only; a value is one line of printable text.",
            fix="Check that the whole key was pasted, without a line break.",
        )
    needs_quotes = value != _unquoted(value.strip())
    line = f'{name}="{value}"' if needs_quotes else f"{name}={value}"
    return f"{drop_secret(text, name)}{line}\n"


def drop_secret(text: str, name: str) -> str:
    """Returns the text of a secrets file without that value; all other lines stay."""
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    kept = [each for each in lines if each.lstrip().startswith("#") or each.partition("=")[0].strip() != name]
    return "".join(f"{each}\n" for each in kept)


def _unquoted(value: str) -> str:
    quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _maskable(values: Iterable[str]) -> frozenset[str]:
    forms: set[str] = set()
    for value in values:
        if len(value) >= MASK_MIN_CHARS:
            forms |= {
                value,
                quote(value, safe=""),
                json.dumps(value)[1:-1],
                json.dumps(value, ensure_ascii=False)[1:-1],
                repr(value)[1:-1],
                repr(f'"{value}')[2:-1],  # as Python writes it within a text that has both quotes
            }
    return frozenset(forms)


def _spans(text: str, values: Iterable[str]) -> Iterable[tuple[int, int]]:
    for value in values:
        start = text.find(value)
        while start >= 0:
            yield start, start + len(value)
            start = text.find(value, start + 1)
