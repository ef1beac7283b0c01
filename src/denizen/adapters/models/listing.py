"""The models that a provider serves, as its API lists them. Set-up shows them; nothing depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from denizen.adapters.models.failures import KEY_REFUSED, UNREACHABLE
from denizen.adapters.models.providers import ProviderSpec, cut_to_origin
from denizen.domain.errors import NeedsAttention, Unavailable

if TYPE_CHECKING:
    import httpx2

_LIMIT_S = 15.0
_AT_ONCE = 1000
_ANTHROPIC_VERSION = "2023-06-01"


async def list_served_models(spec: ProviderSpec) -> list[str]:
    """Returns the names of the provider's models, sorted. Raises Unavailable when there is no connection (UNREACHABLE)
    or the list cannot be read, and NeedsAttention when the key is refused (KEY_REFUSED).
    """
    import httpx2

    path, headers, params = _request(spec)
    try:
        async with httpx2.AsyncClient(timeout=_LIMIT_S) as http:
            answer = await http.get(f"{spec.address.rstrip('/')}{path}", headers=headers, params=params)
        return _read_names(answer)
    except (httpx2.TransportError, httpx2.InvalidURL) as error:
        raise Unavailable(
            f"The provider '{spec.name}' cannot be reached.",
            code=UNREACHABLE,
            why=f"There is no connection to {cut_to_origin(spec.address)}: {str(error) or type(error).__name__}",
            fix="Correct the address.",
        ) from None
    except (httpx2.HTTPError, ValueError, LookupError, TypeError) as error:
        status = f"HTTP {error.response.status_code}" if isinstance(error, httpx2.HTTPStatusError) else ""
        if status in ("HTTP 401", "HTTP 403"):
            raise NeedsAttention(
                f"The provider '{spec.name}' refused the key.", code=KEY_REFUSED, why=status, fix="Correct the key."
            ) from None
        raise Unavailable(
            f"The provider '{spec.name}' does not list its models.",
            code="model_list_unavailable",
            why=status or type(error).__name__,
            fix="Name the model as the provider spells it.",
        ) from None


def _request(spec: ProviderSpec) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    """Returns path, headers and parameters of the request."""
    key = spec.api_key() if spec.api_key is not None else ""
    match spec.facts.protocol:
        case "anthropic":
            versioned = {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}
            return "/v1/models", versioned, {"limit": str(_AT_ONCE)}
        case "google":
            return "/v1beta/models", {"x-goog-api-key": key}, {"pageSize": str(_AT_ONCE)}
        case _:
            return "/models", {"Authorization": f"Bearer {key}"} if key else {}, {}


def _read_names(answer: httpx2.Response) -> list[str]:
    answer.raise_for_status()
    body = answer.json()
    if "models" in body:  # Google's
        return sorted(str(row["name"]).removeprefix("models/") for row in body["models"])
    return sorted(str(row["id"]) for row in body["data"])
