"""What a provider wants back unchanged, folded into the one opaque string that our messages have for it.

A `ThinkingPart` has a `signature`. Providers need more than one string: the id of the item, encrypted content, and
for some a mark on a tool call. All of it travels as compact JSON in the signature, with the model that it belongs to
(`home`), because another model refuses it. Written by `reply`, read by `convert`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class State:
    """`call` is set when the state belongs to the tool call with that id instead of to the thinking itself."""

    home: str
    vendor: str | None = None
    id: str | None = None
    signature: str | None = None
    details: dict[str, Any] | None = None
    call: str = ""


def pack_state(state: State) -> str:
    """The state as one string; empty when there is nothing to give back. Details that are no JSON are left out."""
    if not (state.id or state.signature or state.details):
        return ""
    fields = {
        "home": state.home,
        "vendor": state.vendor,
        "id": state.id,
        "signature": state.signature,
        "details": _json_only(state.details),
        "call": state.call,
    }
    return json.dumps({name: value for name, value in fields.items() if value}, separators=(",", ":"), sort_keys=True)


def unpack_state(text: str) -> State | None:
    """The inverse of `pack_state`; None for anything else."""
    if not text.startswith("{"):
        return None
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    fields = cast("Mapping[str, Any]", found)
    home = fields.get("home")
    if not isinstance(home, str):
        return None
    return State(
        home=home,
        vendor=_text(fields.get("vendor")),
        id=_text(fields.get("id")),
        signature=_text(fields.get("signature")),
        details=cast("dict[str, Any]", fields["details"]) if isinstance(fields.get("details"), dict) else None,
        call=_text(fields.get("call")) or "",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _json_only(details: dict[str, Any] | None) -> dict[str, Any] | None:
    try:
        json.dumps(details, allow_nan=False)
    except (TypeError, ValueError):
        return None
    return details
