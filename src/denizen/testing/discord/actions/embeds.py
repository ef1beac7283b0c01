"""Embeds and components as Discord stores them: checked against limits, with defaults, ids and attachments resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import Any, cast

from denizen.testing.discord.state.errors import bad_form

Fault = tuple[str, str, str]
_TEXTS: Mapping[str, int] = MappingProxyType({"title": 256, "description": 4096})
_TOTAL = 6000
_MAX_EMBEDS = 10
_MAX_FIELDS = 25
_ROWS = 5
_COMPONENTS_V2 = 40
_OPTIONS = 25
_OPTION_CHARS = 100
_MENU, _PREMIUM = 3, 6
_WEB = ("http", "https")
_SHOWN = (*_WEB, "attachment")
_ADDRESSES = (
    ("", "url", _WEB),
    ("image", "url", _SHOWN),
    ("thumbnail", "url", _SHOWN),
    ("author", "url", _WEB),
    ("author", "icon_url", _SHOWN),
    ("footer", "icon_url", _SHOWN),
)
"""The addresses of an embed, by part and field, with the schemes that Discord takes there."""
_LINK = 5
_BUTTON, _SELECTS = 2, frozenset({3, 5, 6, 7, 8})
_DEFAULTS: Mapping[int, Mapping[str, Any]] = MappingProxyType(
    {
        **{kind: {"min_values": 1, "max_values": 1} for kind in _SELECTS},
        14: {"divider": True, "spacing": 1},
        17: {"accent_color": None, "spoiler": False},
    }
)


def too_long(path: str, limit: int) -> Fault:
    return (path, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")


def _url_faults(path: str, url: object, schemes: Sequence[str]) -> Iterable[Fault]:
    if url is None:
        return
    scheme, colon, rest = str(url).partition(":")
    scheme = scheme.lower() if colon else ""
    if scheme not in schemes:
        named = ", ".join(f"'{each}'" for each in schemes if each != "attachment")
        told = f'Scheme "{scheme}" is not supported. Scheme must be one of ({named}).'
        yield (path, "URL_TYPE_INVALID_SCHEME", told)
    elif not rest.removeprefix("//").strip("/"):
        yield (path, "URL_TYPE_INVALID_URL", "Not a well formed URL.")


def store_embeds(embeds: Sequence[Mapping[str, Any]], files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns checked and completed copies. `files` maps names to URLs, for `attachment://name`. Raises 50035."""
    faults = [fault for index, embed in enumerate(embeds) for fault in _embed_faults(f"embeds.{index}", embed)]
    if len(embeds) > _MAX_EMBEDS:
        faults.append(too_long("embeds", _MAX_EMBEDS))
    if sum(map(measure_embed, embeds)) > _TOTAL:
        faults.append(("embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {_TOTAL}"))
    if faults:
        raise bad_form(faults)
    return [_stored_embed(embed, files) for embed in embeds]


def measure_embed(embed: Mapping[str, Any]) -> int:
    """Returns the number of characters that count towards the limit of a message's embeds."""
    parts = [embed.get("title"), embed.get("description")]
    parts += [_part(embed, "footer").get("text"), _part(embed, "author").get("name")]
    fields: list[dict[str, Any]] = embed.get("fields") or []
    for each in fields:
        parts += [each.get("name"), each.get("value")]
    return sum(len(part) for part in parts if isinstance(part, str))


def _part(embed: Mapping[str, Any], name: str) -> dict[str, Any]:
    return embed.get(name) or {}


def _embed_faults(path: str, embed: Mapping[str, Any]) -> Iterable[Fault]:
    for name, limit in _TEXTS.items():
        if len(str(embed.get(name) or "")) > limit:
            yield too_long(f"{path}.{name}", limit)
    for name, key, limit in (("footer", "text", 2048), ("author", "name", 256)):
        if len(_part(embed, name).get(key) or "") > limit:
            yield too_long(f"{path}.{name}.{key}", limit)
    for part, key, schemes in _ADDRESSES:
        holder = _part(embed, part) if part else embed
        yield from _url_faults(".".join(filter(None, (path, part, key))), holder.get(key), schemes)
    fields: list[dict[str, Any]] = embed.get("fields") or []
    if len(fields) > _MAX_FIELDS:
        yield too_long(f"{path}.fields", _MAX_FIELDS)
    for index, each in enumerate(fields):
        for key, limit in (("name", 256), ("value", 1024)):
            text = each.get(key)
            if not text:
                yield (f"{path}.fields.{index}.{key}", "BASE_TYPE_REQUIRED", "This field is required")
            elif len(text) > limit:
                yield too_long(f"{path}.fields.{index}.{key}", limit)


def _stored_embed(embed: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: value for key, value in embed.items() if value not in (None, [], {})}
    kept["type"] = "rich"
    for name in ("image", "thumbnail"):
        if name in kept:
            url = str(kept[name].get("url") or "")
            url = files.get(url.removeprefix("attachment://"), url) if url.startswith("attachment://") else url
            kept[name] = {"url": url, "proxy_url": url, "width": 0, "height": 0}
    if "fields" in kept:
        kept["fields"] = [{"inline": False, **each} for each in kept["fields"]]
    return kept


def used_files(embeds: Sequence[Mapping[str, Any]]) -> set[str]:
    """Returns the names of attachments that embeds show; the message does not list them as files."""
    media = [_part(embed, name) for embed in embeds for name in ("image", "thumbnail")]
    return {
        str(each["url"]).removeprefix("attachment://")
        for each in media
        if str(each.get("url", "")).startswith("attachment://")
    }


def store_components(components: Sequence[Mapping[str, Any]], *, v2: bool, path: str = "components") -> list[Any]:
    """Returns checked and completed copies, in which every component has an id. Raises 50035."""
    faults: list[Fault] = []
    everything = list(_walk(components, path))
    if not v2 and len(components) > _ROWS:
        faults.append(too_long(path, _ROWS))
    if v2 and len(everything) > _COMPONENTS_V2:
        faults.append(too_long(path, _COMPONENTS_V2))
    seen: set[str] = set()
    for place, each in everything:
        faults += _component_faults(place, each, v2=v2)
        custom_id = each.get("custom_id")
        if custom_id in seen:
            code, why = "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated"
            faults.append((f"{place}.custom_id", code, why))
        if isinstance(custom_id, str):
            seen.add(custom_id)
    if faults:
        raise bad_form(faults)
    taken = {each["id"] for _, each in everything if each.get("id")}
    fresh = (number for number in count(1) if number not in taken)
    return [_stored_component(each, fresh) for each in components]


def find_component(components: Iterable[Mapping[str, Any]], custom_id: str) -> Mapping[str, Any] | None:
    """Returns the component with this custom id, at any depth."""
    for _, each in _walk(components, ""):
        if each.get("custom_id") == custom_id:
            return each
    return None


def _walk(components: Iterable[Mapping[str, Any]], path: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for index, each in enumerate(components):
        place = f"{path}.{index}"
        yield place, each
        yield from _walk(each.get("components") or [], f"{place}.components")
        for name in ("accessory", "component"):
            if isinstance(each.get(name), dict):
                yield f"{place}.{name}", each[name]


def _component_faults(place: str, each: Mapping[str, Any], *, v2: bool) -> Iterable[Fault]:
    kind = each.get("type")
    top = place.count(".") == 1
    if not isinstance(kind, int):
        yield (f"{place}.type", "BASE_TYPE_REQUIRED", "This field is required")
        return
    if top and not v2 and kind not in (1, 18):
        yield (f"{place}.type", "UNION_TYPE_CHOICES", 'Value of field "type" must be one of (1,).')
    for name, limit in (("custom_id", 100), ("label", 80 if kind == _BUTTON else 45), ("placeholder", 150)):
        if len(str(each.get(name) or "")) > limit:
            yield too_long(f"{place}.{name}", limit)
    if kind == 1:
        inner = cast("list[dict[str, Any]]", each.get("components") or [])
        if not 1 <= len(inner) <= _ROWS:
            yield (f"{place}.components", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {_ROWS} in length.")
    if kind == _BUTTON and not (each.get("label") or each.get("emoji") or each.get("style") == _PREMIUM):
        yield (place, "BUTTON_COMPONENT_MISSING_LABEL_OR_EMOJI", "A button needs a label or an emoji")
    if kind == _BUTTON and each.get("style") == _LINK:
        yield from _url_faults(f"{place}.url", each.get("url"), (*_WEB, "discord"))
    if kind == _MENU:
        yield from _menu_faults(place, each)
    needs_id = kind in _SELECTS or (kind == _BUTTON and each.get("style") not in (5, 6))
    if needs_id and not each.get("custom_id"):
        yield (f"{place}.custom_id", "BASE_TYPE_REQUIRED", "This field is required")


def _menu_faults(place: str, menu: Mapping[str, Any]) -> Iterable[Fault]:
    options = cast("list[dict[str, Any]]", menu.get("options") or [])
    if not 1 <= len(options) <= _OPTIONS:
        yield (f"{place}.options", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {_OPTIONS} in length.")
    for index, option in enumerate(options):
        for name in ("label", "value", "description"):
            if len(str(option.get(name) or "")) > _OPTION_CHARS:
                yield too_long(f"{place}.options.{index}.{name}", _OPTION_CHARS)
            elif name != "description" and not option.get(name):
                yield (f"{place}.options.{index}.{name}", "BASE_TYPE_REQUIRED", "This field is required")
    values = [option.get("value") for option in options]
    if len(set(values)) < len(values):
        yield (
            f"{place}.options",
            "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED",
            "The specified option value is already used",
        )
    low, high = menu.get("min_values", 1), menu.get("max_values", 1)
    if not 0 <= low <= high <= len(options):
        yield (f"{place}.max_values", "BASE_TYPE_BAD_LENGTH", f"Must be between {low} and {len(options)}.")


def _stored_component(each: Mapping[str, Any], fresh: Iterable[int]) -> dict[str, Any]:
    numbers = iter(fresh)
    kept: dict[str, Any] = {**_DEFAULTS.get(each["type"], {})}
    kept |= {key: value for key, value in each.items() if value is not None}
    kept |= _stored_emoji(kept)
    kept["id"] = each.get("id") or next(numbers)
    if each["type"] == _MENU:
        options = cast("list[dict[str, Any]]", kept.get("options") or [])
        kept["options"] = [option | _stored_emoji(option) for option in options]
    if "components" in kept:
        kept["components"] = [_stored_component(inner, numbers) for inner in kept["components"]]
    for name in ("accessory", "component"):
        if isinstance(kept.get(name), dict):
            kept[name] = _stored_component(kept[name], numbers)
    return kept


def _stored_emoji(each: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an emoji in stored form. A Unicode one has no id."""
    emoji = each.get("emoji")
    return {"emoji": {key: value for key, value in emoji.items() if value is not None}} if emoji else {}
