"""The capabilities of a model, by the kind of its provider and its name: a table to read, and overrides on top.

The first row whose pattern matches the start of the bare model name (lower case, vendor prefix and variant cut off) is
laid over the defaults of the kind. Unknown models of a vendor are taken for its newest: what the newest one rejects
(sampling, prefill) is then left out, and leaving it out never fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from denizen.adapters.models.providers import PROVIDERS, ProviderKind, defaults
from denizen.domain.errors import InvalidInput
from denizen.ports.model import Capabilities

Changes = Mapping[str, Any]

_FULL = frozenset({"temperature", "top_p", "seed"})
_NO_SEED = frozenset({"temperature", "top_p"})
_NONE: frozenset[str] = frozenset()


_CLAUDE: Changes = {"images": True, "cache_marks": True, "sampling": _NO_SEED}
_OLD_CLAUDE: Changes = {**_CLAUDE, "prefill": True}

_FAMILIES: tuple[tuple[str, Changes], ...] = (
    # Anthropic. Prefill is refused from 4.6 on, sampling from Opus 4.7 and all of 5 on.
    (r"claude-3-7", {**_OLD_CLAUDE, **defaults(200_000, 64_000, json_schema=False)}),
    (r"claude-3-5", {**_OLD_CLAUDE, **defaults(200_000, 8192, json_schema=False)}),
    (r"claude-3", {**_OLD_CLAUDE, **defaults(200_000, 4096, json_schema=False)}),
    (r"claude-opus-4-1", {**_OLD_CLAUDE, **defaults(200_000, 32_000)}),
    (r"claude-\w+-4-5", {**_OLD_CLAUDE, **defaults(200_000, 64_000)}),
    (r"claude-\w+-4-6", {**_CLAUDE, **defaults(1_000_000, 128_000)}),
    (r"claude-opus-4(-0|-20|@|$)", {**_OLD_CLAUDE, **defaults(200_000, 32_000, json_schema=False)}),
    (r"claude-sonnet-4(-0|-20|@|$)", {**_OLD_CLAUDE, **defaults(200_000, 64_000, json_schema=False)}),
    (r"claude", {**_CLAUDE, **defaults(1_000_000, 128_000, sampling=_NONE)}),
    # OpenAI. Models that reason unless told not to refuse sampling.
    (r"gpt-oss", defaults(131_072)),
    (r"gpt-5-chat", defaults(128_000, 16_384, images=True, sampling=_FULL)),
    (r"gpt-5(\.\d)?-(pro|chat|codex)", defaults(400_000, 128_000, images=True, sampling=_NONE)),
    (r"gpt-5\.4", defaults(1_050_000, 128_000, images=True, sampling=_FULL)),
    (r"gpt-5\.[1-3]", defaults(400_000, 128_000, images=True, sampling=_FULL)),
    (r"gpt-5\.", defaults(1_000_000, 128_000, images=True, sampling=_NONE)),
    (r"gpt-5", defaults(400_000, 128_000, images=True, sampling=_NONE)),
    (r"gpt-4\.1", defaults(1_000_000, 32_768, images=True, sampling=_FULL)),
    (r"(chat)?gpt-4o", defaults(128_000, 16_384, images=True, sampling=_FULL)),
    (r"gpt-4-turbo", defaults(128_000, 4096, images=True, sampling=_FULL, json_schema=False)),
    (r"gpt-4", defaults(8192, 4096, sampling=_FULL, images=False, json_schema=False)),
    (r"gpt-3\.5", defaults(16_385, 4096, sampling=_FULL, images=False, json_schema=False)),
    (r"gpt-", defaults(1_050_000, 128_000, images=True, sampling=_NONE)),
    (r"o[13]-mini", defaults(200_000, 100_000, images=False, sampling=_NONE)),
    (r"o[134](-|$)", defaults(200_000, 100_000, images=True, sampling=_NONE)),
    # Google.
    (r"gemini-(1|2\.0)", defaults(1_000_000, 8192, images=True)),
    (r"gemini", defaults(1_000_000, 65_536, images=True)),
    (r"gemma-?[3-9]", {"images": True, "native_tools": False}),
    (r"gemma", defaults(8192, native_tools=False)),
    # xAI.
    (r"grok-[1-3]", defaults(131_072, images=False)),
    (r"grok-4(-1|\.1)?-fast", defaults(2_000_000, images=True)),
    (r"grok", defaults(256_000, images=True)),
    # DeepSeek's own service knows `json_object` only.
    (r"deepseek-(chat|reasoner|v\d)", defaults(64_000, json_schema=False)),
    (r"deepseek", defaults(64_000)),
    # Open weights. Contexts are what the weights allow, bounded by what servers usually give.
    (r"pixtral", defaults(128_000, images=True)),
    (r"mistral-(7b|nemo)|mixtral", defaults(32_768)),
    (r"(mi|code|dev|magi)stral|ministral", defaults(128_000)),
    (r"llama-?4|llama-?3\.2-(11b|90b|vision)", defaults(131_072, images=True)),
    (r"llama-?3\.", defaults(131_072)),
    (r"llama-?3", defaults(8192)),
    (r"(code)?llama-?2|tinyllama|vicuna", defaults(4096, native_tools=False)),
    (r"qwen[\w.-]*-?vl", {"images": True}),
    (r"phi-?[1-3]", defaults(16_384, native_tools=False)),
    (r"smollm", defaults(4096, native_tools=False)),
)
_ROWS = tuple((re.compile(pattern), changes) for pattern, changes in _FAMILIES)

_SMALL_NAMES = re.compile(r"smollm|tinyllama|phi-?[34](\.\d)?-mini|llama-?3\.2(:latest)?$|-nano-4b")
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])|(?<![a-z0-9])e([24])b(?![a-z0-9])")
_SMALL_BILLIONS = 4.0

_IMAGE_NAMES = re.compile(r"-image(-|$)")
"""Gemini and GPT models that answer with pictures; they take no tools."""

EMBEDDED_OUTPUT_TOKENS = 1024
"""The limit of an answer. A small model that has lost the thread goes on for minutes, until it is stopped."""


def detect_capabilities(kind: ProviderKind, model: str) -> Capabilities:
    """Returns the capabilities of `model` (without the provider's name) on a provider of this kind."""
    facts = PROVIDERS[kind]
    traits = facts.models
    found = replace(Capabilities(), **traits.defaults)
    # The name that families are told by: no vendor (`anthropic/`), no variant (`:free`), Claude with dashes.
    bare = model.lower().rsplit("/", 1)[-1].split(":", 1)[0]
    bare = bare.replace(".", "-") if bare.startswith("claude") else bare
    for pattern, changes in _ROWS:
        if pattern.match(bare):
            found = replace(found, **changes)
            break
    if kind == "embedded":
        return replace(
            found, native_tools=False, json_schema=True, cache_marks=False, max_output_tokens=EMBEDDED_OUTPUT_TOKENS
        )
    draws = traits.draws and _IMAGE_NAMES.search(bare) is not None
    return replace(
        found,
        image_output=draws,
        images=found.images or draws,
        native_tools=found.native_tools and not draws,
        small=is_small(model),
        cache_marks=found.cache_marks and bool(facts.wire.cache_marks),
        prefill=found.prefill and traits.prefill,
        sampling=found.sampling if traits.seed else found.sampling - {"seed"},
        json_schema=found.json_schema or (traits.grammar and not model.endswith("-cloud")),
    )


def is_small(model: str) -> bool:
    """Returns whether the name tells of at most four thousand million parameters: such models plan, then act."""
    name = model.lower()
    if _SMALL_NAMES.search(name):
        return True
    sizes = [_billions(match) for match in _SIZE.finditer(name)]
    return bool(sizes) and max(sizes) <= _SMALL_BILLIONS


def override_capabilities(found: Capabilities, overrides: Mapping[str, object], model: str) -> Capabilities:
    """Returns `found` with the configured corrections. Raises InvalidInput for an unknown field or a wrong type."""
    known = {field.name for field in fields(Capabilities)}
    changes: dict[str, Any] = {}
    for name, value in overrides.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise InvalidInput(
                f"The model '{model}' has an unknown setting '{name}'.",
                code="model_setting_unknown",
                fix=f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(sorted(known))}.",
            )
        changes[name] = _checked(model, name, value, getattr(found, name))
    return replace(found, **changes)


def _checked(model: str, name: str, value: object, current: object) -> object:
    if name == "sampling" and isinstance(value, list | tuple | set | frozenset):
        parameters = frozenset(str(item) for item in value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - checked below
        if parameters <= _FULL:
            return parameters
    elif isinstance(current, bool):
        if isinstance(value, bool):
            return value
    elif name.endswith("_tokens"):
        may_be_open = name == "max_output_tokens" and value is None
        if may_be_open or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value
    wanted = {"sampling": f"a list out of {', '.join(sorted(_FULL))}"}.get(
        name, "true or false" if isinstance(current, bool) else "a whole number above zero"
    )
    raise InvalidInput(
        f"The setting '{name}' of the model '{model}' cannot be {value!r}.",
        code="model_setting_invalid",
        fix=f"Give {wanted}.",
    )


def _billions(size: re.Match[str]) -> float:
    number, unit, effective = size.groups()
    if effective:
        return float(effective)
    return float(number) / (1 if unit == "b" else 1000)
