"""The kinds of values that settings are made of: how each is read, and the error when it cannot be.

A validator refuses with `refuse`, which carries the sentence and the remedy; `explain` adds file, line and key.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, TypeVar, cast
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WrapValidator,
    model_validator,
)
from pydantic import ValidatorFunctionWrapHandler as Handler
from pydantic_core import PydanticCustomError

from denizen.app.home.secrets import SecretRef
from denizen.app.settings.interpolation import InterpolatedText, whole_reference
from denizen.app.settings.problem import find_closest

REFUSED = "refused"
LITERAL_SECRET = "literal_secret"  # noqa: S105 - the name of an error, not a secret
STORE_SCHEMES = ("sqlite", "postgresql")

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_AGENT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")

RecordT = TypeVar("RecordT")


class Section(BaseModel):
    """A group of keys. Unknown keys are refused; a known key without a value counts as left out."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _left_out(cls, data: object) -> object:
        if data is None:
            return {}
        if not isinstance(data, Mapping):
            return data
        items = cast("Mapping[str, object]", data).items()
        return {key: value for key, value in items if value is not None or key not in cls.model_fields}

    @property
    def foreign_keys(self) -> frozenset[str]:
        """The keys that this section cannot have, given its other values. They are not shown."""
        return frozenset()


def _show_login_only(schema: dict[str, Any], account: type[AccountSection]) -> None:
    schema["properties"] = {
        name: shown for name, shown in schema["properties"].items() if name not in account.POLICY.model_fields
    }


class AccountSection(Section):
    """One agent's login on a platform, with any key of the platform's policy. The reference shows the policy once, at
    the platform, and a listing of the configuration only those of its keys that the account sets itself.
    """

    POLICY: ClassVar[type[Section]]
    model_config = ConfigDict(json_schema_extra=_show_login_only)

    @property
    def foreign_keys(self) -> frozenset[str]:
        return frozenset(self.POLICY.model_fields) - self.model_fields_set


def read_short_account(value: object) -> object:
    """Returns the section that the short form of an account, its token alone, stands for."""
    return {"token": value} if isinstance(value, str) else value


def default_section(description: str | None = None) -> Any:  # noqa: ANN401 - as pydantic's `Field`
    """Returns the field of a section that may be left out. The section around it builds it from no keys, so it needs no
    validator of its own; making all of those took 20 ms of each start.
    """
    return Field(default={}, validate_default=True, description=description)


def copy_fields(section: Section, record: type[RecordT], **given: object) -> RecordT:
    """Builds a dataclass from the keys of a section that have the names of its fields; `given` takes precedence."""
    known = type(section).model_fields
    names = [each.name for each in fields(record) if each.name in known]  # pyright: ignore[reportArgumentType] - a dataclass
    values: dict[str, Any] = {name: getattr(section, name) for name in names} | given
    return record(**values)


def refuse(message: str, fix: str, *, key: str = "") -> PydanticCustomError:
    """Returns the error of a validator. `key` is a key below the validated value, when that one is to blame.

    The sentences must not quote the value: validators do not see whether it came out of the environment.
    """
    return PydanticCustomError(REFUSED, "{message}", {"message": message, "fix": fix, "key": key})


def at_most(limit_chars: int) -> AfterValidator:
    """Returns a validator that bounds the length of a text."""

    def check(value: str) -> str:
        if len(value) > limit_chars:
            raise refuse(f"must have at most {limit_chars} characters.", "Shorten it.")
        return value

    return AfterValidator(check)


def keep_template(value: object, handler: Handler) -> object:
    """Wraps the checks of a text: one that came out of a template keeps the template."""
    checked: object = handler(value)
    return value if isinstance(value, InterpolatedText) else checked


def show_value(value: object) -> str:
    """Returns a value for an error: the text in the file, never a value of the environment."""
    text = value.template if isinstance(value, InterpolatedText) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _no_flag_int(value: object) -> object:
    """Refuses a yes or no in place of a number: for Python they are numbers."""
    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "a number is wanted")
    return value


def _no_flag_float(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "a number is wanted")
    return value


def read_digits(value: object) -> object:
    """Reads a platform's id, which YAML takes for a number when it has no quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read_secret(value: object) -> SecretRef | None:
    template = value.template if isinstance(value, InterpolatedText) else value
    if template is None or template == "":
        return None
    reference = whole_reference(template) if isinstance(template, str) else None
    if reference is None or reference.default:
        raise PydanticCustomError(LITERAL_SECRET, "a secret stands in the file")
    return SecretRef(reference.name, optional=reference.default is not None)


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        fix = "Use lower-case letters, digits, and _ . - after the first character; 64 at most."
        raise refuse("this cannot be a name.", fix)
    return value


def _agent_name(value: str) -> str:
    if not _AGENT_NAME.fullmatch(value):
        fix = "Use lower-case letters, digits, and _ - after the first character; 32 at most. It names a folder too."
        raise refuse("this cannot be the name of an agent.", fix)
    return value


def _language(value: str) -> str:
    if not _LANGUAGE.fullmatch(value):
        raise refuse("this is not a language code.", "Write a code such as en, de or pt-BR.")
    return value


def _zone(value: object, handler: Handler) -> object:
    checked: object = handler(value)
    try:
        ZoneInfo(str(checked))
    except (KeyError, ValueError, OSError):
        # What came out of the environment is not compared: the answer would tell what it nearly is.
        near = "" if isinstance(value, InterpolatedText) else find_closest(str(checked), available_timezones())
        hint = f"Did you mean '{near}'? " if near else ""
        raise refuse("this is not a time zone.", f"{hint}Write a name such as UTC or Europe/Berlin.") from None
    return value if isinstance(value, InterpolatedText) else checked


def _not_empty(value: str) -> str:
    if not value.strip():
        raise refuse("must not be empty.", "Write a value, or take the key out.")
    return value


def _pattern(value: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # a set such as `[[`, which will mean something else
            re.compile(value)
    except (re.error, FutureWarning):
        fix = "Correct it (a bracket in brackets is `\\[`); put it in single quotes, so that backslashes stay."
        raise refuse("this is not a regular expression.", fix) from None
    return value


def _http_url(value: str) -> str:
    if value and not is_url(value, ("http", "https")):
        raise refuse("must be a web address.", "Write it in full, such as http://127.0.0.1:9100/v1.")
    return value


def _websocket_url(value: str) -> str:
    if value and not is_url(value, ("ws", "wss")):
        raise refuse("must be the address of a websocket.", "Write it in full, such as ws://127.0.0.1:9200/gateway.")
    return value


def _store_url(value: str) -> str:
    scheme = value.partition(":")[0].partition("+")[0]
    usable = (scheme == "sqlite" and "://" in value) or _is_postgres(value)
    if value and not usable:
        fix = "Write sqlite:///path/to/file.db or postgresql://user:${PGPASSWORD}@host/name, or leave it empty."
        raise refuse(f"must be the address of a database ({' or '.join(STORE_SCHEMES)}).", fix)
    return value


def _is_postgres(value: str) -> bool:
    """Returns whether this is a Postgres address. Without a host, the server is on this machine behind a socket:
    `postgresql:///name?host=/run/postgresql`.
    """
    try:
        parts = urlsplit(value)
        is_full = "://" in value and bool(parts.hostname or parts.path.strip("/"))
        return parts.scheme.partition("+")[0] == "postgresql" and is_full and (parts.port or 1) > 0
    except ValueError:
        return False


def is_url(value: str, schemes: tuple[str, ...]) -> bool:
    """Returns whether this is a full address with one of these schemes and a host."""
    try:
        parts = urlsplit(value)
        return parts.scheme.partition("+")[0] in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


Text = Annotated[str, WrapValidator(keep_template)]
"""Any text. One that came out of a template keeps it."""
SomeText = Annotated[str, AfterValidator(_not_empty), WrapValidator(keep_template)]
Name = Annotated[str, AfterValidator(_name), WrapValidator(keep_template)]
AgentNameText = Annotated[str, AfterValidator(_agent_name)]
Language = Annotated[str, AfterValidator(_language), WrapValidator(keep_template)]
Pattern = Annotated[str, AfterValidator(_pattern), WrapValidator(keep_template)]
"""A regular expression."""
HttpUrl = Annotated[str, AfterValidator(_http_url), WrapValidator(keep_template)]
WebSocketUrl = Annotated[str, AfterValidator(_websocket_url), WrapValidator(keep_template)]
Zone = Annotated[str, WrapValidator(_zone)]
"""The IANA name of a time zone."""
StoreUrl = Annotated[str, AfterValidator(_store_url), WrapValidator(keep_template)]
Whole = Annotated[int, BeforeValidator(_no_flag_int)]
Number = Annotated[float, BeforeValidator(_no_flag_float)]
Secret = Annotated[SecretRef | None, PlainValidator(_read_secret)]
"""A `${NAME}`, or empty for none."""


def as_variable(text: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in text).upper()
