"""The JSON value type, for payloads that cross a process or a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

JsonScalar = str | int | float | bool | None
Json = JsonScalar | Sequence["Json"] | Mapping[str, "Json"]
JsonObject = dict[str, Json]
