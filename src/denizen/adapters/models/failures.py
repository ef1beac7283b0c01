"""The errors of vendors as our errors: which family, worth another try or not, and never with a secret in it. Pure.

Silence is not worth another try: it has cost its whole time-out already, and a fallback can answer in the meantime. The
vendor's exception itself goes no further: its text and its request object may hold what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from email.utils import parsedate_to_datetime
from traceback import walk_tb
from typing import TYPE_CHECKING, cast

from denizen.adapters.models.providers import cut_to_origin, list_key_prefixes
from denizen.domain.errors import DenizenError, InvalidInput, LimitExceeded, NeedsAttention, Unavailable
from denizen.domain.record import record
from denizen.domain.words import truncate

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError

UNREACHABLE = "model_unreachable"
"""The code of an error that says that no connection could be made, or that it broke."""

KEY_REFUSED = "model_key_refused"
"""The code of an error that says that the provider does not take the key."""

_SHOWN_CHARS = 300
_DOWNLOAD = "download_item"
"""The function of pydantic-ai that fetches a picture for a provider that takes bytes only. It raises the same errors as
a request to the provider.
"""
# Providers repeat parts of a refused key, such as `sk-ab***yz`; pk and rk begin restricted keys.
_KEY_STARTS = "|".join(sorted({"pk", "rk", *(prefix.rstrip("-_") for prefix in list_key_prefixes())}))
_KEY_LIKE = re.compile(
    rf"(?i)\b(?:{_KEY_STARTS})[-_][\w*.-]{{6,}}"
    r"|\b(?:key|api|token)[-_](?=[\w*.-]*\d)[\w*.-]{12,}"
    r"|\bBearer\s+\S+|\bAIza[\w*-]{6,}"
)
_TOO_LONG = re.compile(
    r"(?i)context (size|length|window)|maximum context|exceeds? the available context|prompt is too long"
    r"|input is too long|too many (input )?tokens|reduce the length"
)


@record
class FailureContext:
    """A failed request. `key_name` is the variable or setting of the key; `secrets` must not be shown. Of the
    provider's address `origin` is the part that holds none.
    """

    model: str
    provider: str
    origin: str
    key_name: str
    secrets: tuple[str, ...] = field(repr=False)

    def clean(self, text: str) -> str:
        """Returns the provider's words, short and without anything that looks like a key."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return truncate(_KEY_LIKE.sub("***", " ".join(text.split())), _SHOWN_CHARS)


@record
class ModelFailure:
    """A failed attempt. `retry_after_s` is the pause that the provider asked for."""

    error: DenizenError
    retryable: bool = False
    retry_after_s: float | None = None


class AttemptFailed(Exception):  # noqa: N818 - no error that people see: `failure.error` is
    """A request to a model failed; raised by clients."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.error.message)
        self.failure = failure


def vendor_errors() -> tuple[type[Exception], ...]:
    """Returns everything that the vendor's layer may raise: its own errors, the transport's, and those of its parser.

    The last ones (ValueError and so on) come from malformed replies.
    """
    import httpx2
    from pydantic_ai.exceptions import AgentRunError, UserError

    parser = (ValueError, TypeError, AttributeError, LookupError, AssertionError, ArithmeticError, RuntimeError)
    return (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, *parser)


def classify_failure(error: Exception, target: FailureContext) -> ModelFailure:
    """Returns the failure that an exception out of `vendor_errors` means."""
    from pydantic_ai import exceptions as vendor

    if any(frame.f_code.co_name == _DOWNLOAD for frame, _ in walk_tb(error.__traceback__)):
        return ModelFailure(_picture_missing(target, str(error) or type(error).__name__))
    match error:
        case vendor.ModelAPIError():
            return _api_failure(error, target)
        case vendor.UserError():
            return ModelFailure(_rejected(target, str(error)))
        case _:
            return classify_transport(error, target)


def classify_transport(error: Exception, target: FailureContext) -> ModelFailure:
    """Returns the failure that an exception of the HTTP client or of a parser means."""
    import httpx2

    match error:
        case httpx2.SSEError():
            return ModelFailure(_bad_reply(target, str(error)))
        case TimeoutError() | httpx2.ReadTimeout():
            return ModelFailure(_timed_out(target))
        case httpx2.TimeoutException():
            return ModelFailure(_unreachable(target, type(error).__name__), retryable=True)
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ModelFailure(_bad_address(target, str(error)))
        case httpx2.TransportError():
            return ModelFailure(_unreachable(target, str(error) or type(error).__name__), retryable=True)
        case _:
            return ModelFailure(_bad_reply(target, f"{type(error).__name__}: {error}"))


_QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "exceeded_current_quota_error",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
    }
)
_WRONG_KEY = re.compile(r"(?i)(incorrect|invalid) api key|api key not valid")
"""The words for a refused key of xAI and Gemini, which give it the status 400."""
_STATUS_OF_CODE = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", "too_many_requests"), 429),
    **dict.fromkeys(("overloaded", "overloaded_error", "server_is_overloaded", "service_unavailable"), 503),
    "context_length_exceeded": 413,
    "model_not_found": 404,
    "invalid_api_key": 401,
    "server_error": 500,
}
"""The codes that say more exactly than a status what is wrong, or come without one, within a stream."""


def classify_response(
    status: int | None, body: object, headers: Mapping[str, str], target: FailureContext
) -> ModelFailure:
    """Returns the failure that a server of chat completions tells: by its own code, and then by the status."""
    if isinstance(body, list):  # as Gemini tells its errors
        body = next(iter(cast("list[object]", body)), None)
    whole = _find_object(body)
    told = _find_object(whole.get("error", whole))
    codes = [str(told[name]) for name in ("code", "type") if told.get(name)]
    status = next((_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE), status)
    status = status or next((int(code) for code in codes if code.isdigit()), None)
    said = target.clean(_find_words(body))
    if status == 402 or not _QUOTA_CODES.isdisjoint(codes):
        return ModelFailure(_no_quota(target, said))
    if status == 413 or (status in {400, 422, None} and _TOO_LONG.search(said)):
        return ModelFailure(_too_long(target, said))
    if status in {401, 403} or (status == 400 and _WRONG_KEY.search(said)):
        return ModelFailure(_key_refused(target, said if status == 403 else ""))
    if status == 404:
        return ModelFailure(_unknown_model(target, said))
    if status is None:
        is_rejected = "invalid_request_error" in codes
        return ModelFailure(_rejected(target, said)) if is_rejected else _busy(target, said, "model_server_error", None)
    if status < 400:
        return ModelFailure(
            _bad_address(target, f"The server redirects to {cut_to_origin(headers.get('location', ''))}.")
        )
    if status in {408, 409, 429} or status >= 500:
        is_overload = status in {503, 529} or "overloaded" in said.lower()
        code = "model_rate_limited" if status == 429 else "model_overloaded" if is_overload else "model_server_error"
        return _busy(target, said if code != "model_server_error" else f"HTTP {status}: {said}", code, _wait_s(headers))
    return ModelFailure(_rejected(target, f"HTTP {status}: {said}"))


def _find_object(value: object) -> Mapping[str, object]:
    """Returns a JSON object; an empty one for anything else."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _wait_s(headers: Mapping[str, str]) -> float | None:
    """Returns the pause that a server asks for, in seconds or as a date (RFC 9110, 10.2.3)."""
    told, sent = headers.get("retry-after", ""), headers.get("date", "")
    try:
        return max(float(told), 0.0)
    except ValueError:
        pass
    try:
        return max((parsedate_to_datetime(told) - parsedate_to_datetime(sent)).total_seconds(), 0.0)
    except (TypeError, ValueError):
        return None


def _api_failure(error: ModelAPIError, target: FailureContext) -> ModelFailure:
    """Returns the failure by the provider's own code, which says more exactly, and then by the status."""
    from pydantic_ai import exceptions as vendor

    said = target.clean(_find_words(error.body).strip() or str(error))
    is_http = isinstance(error, vendor.ModelHTTPError)
    status, suggested = (error.status_code, error.suggested_model_id) if is_http else (0, None)
    match error:
        case vendor.ModelQuotaExceededError():
            return ModelFailure(_no_quota(target, said))
        case vendor.ModelContextWindowExceededError():
            return ModelFailure(_too_long(target, said))
        case _ if status == 413 or (status in {400, 422} and _TOO_LONG.search(said)):
            return ModelFailure(_too_long(target, said))
        case vendor.ModelAuthenticationError():
            return ModelFailure(_key_refused(target, said if status == 403 else ""))
        case vendor.ModelNotFoundError():
            hint = f"Did you mean '{suggested}'?" if suggested else ""
            return ModelFailure(_unknown_model(target, said, hint))
        case vendor.ModelHTTPError():
            return _http_failure(error, said, target)
        case vendor.ModelRequestTimeout() | vendor.ModelTimeoutError(phase="read"):
            return ModelFailure(_timed_out(target))
        case vendor.ModelConnectionError():
            return ModelFailure(_unreachable(target, said), retryable=True)
        case vendor.ModelRequestRejectedError():
            return ModelFailure(_rejected(target, said))
        case vendor.ModelRateLimitError():
            return _busy(target, said, "model_rate_limited", error.retry_after)
        case vendor.ModelUnavailableError() | vendor.ModelServerError():
            return _busy(target, said, "model_overloaded", error.retry_after)
        case _:
            return ModelFailure(_bad_reply(target, said))


def _http_failure(error: ModelHTTPError, said: str, target: FailureContext) -> ModelFailure:
    from pydantic_ai import exceptions as vendor

    status = error.status_code
    if status == 429:
        return _busy(target, said, "model_rate_limited", error.retry_after)
    if status in {408, 409} or status >= 500:
        code = "model_overloaded" if isinstance(error, vendor.ModelUnavailableError) else "model_server_error"
        return _busy(target, f"HTTP {status}: {said}", code, error.retry_after)
    return ModelFailure(_rejected(target, f"HTTP {status}: {said}"))


def _find_words(body: object) -> str:
    """Returns the provider's own sentence out of an error body, whatever its shape; empty for no body."""
    for name in ("error", "message", "detail"):
        if isinstance(body, dict):
            body = cast("dict[str, object]", body).get(name, cast("object", body))
    return "" if body is None else f"{body}"


def _busy(target: FailureContext, said: str, code: str, retry_after_s: float | None) -> ModelFailure:
    message = {
        "model_rate_limited": f"The provider '{target.provider}' limits the rate of requests.",
        "model_overloaded": f"The provider '{target.provider}' is overloaded.",
    }.get(code, f"The provider '{target.provider}' failed.")
    error = Unavailable(
        message, code=code, why=said, fix="Try again later.", retry_after_s=retry_after_s, model=target.model
    )
    return ModelFailure(error, retryable=True, retry_after_s=retry_after_s)


def _unreachable(target: FailureContext, said: str) -> DenizenError:
    return Unavailable(
        f"The provider '{target.provider}' cannot be reached.",
        code=UNREACHABLE,
        why=f"There is no connection to {target.origin}: {target.clean(said)}",
        fix="Check the network and the provider's base_url.",
        model=target.model,
    )


def _picture_missing(target: FailureContext, said: str) -> DenizenError:
    return Unavailable(
        "A picture of this talk cannot be fetched.",
        code="model_picture_missing",
        why=f"The provider '{target.provider}' takes pictures themselves, no addresses: {target.clean(said)}",
        fix="Send the picture itself in place of its address, or begin a new session without it.",
        model=target.model,
    )


def cut_off(target: FailureContext) -> DenizenError:
    """Returns the error of an answer that ended before the provider said that it was complete."""
    return Unavailable(
        f"The answer of the provider '{target.provider}' broke off.",
        code="model_cut_off",
        why="The stream ended before the provider said that the answer was complete.",
        fix="Try again.",
        model=target.model,
    )


def _timed_out(target: FailureContext) -> DenizenError:
    return Unavailable(
        f"The provider '{target.provider}' did not answer in time.",
        code="model_timeout",
        why=f"Nothing arrived from {target.origin} within the time-out.",
        fix="Try again later, or raise the provider's time-outs if the model is known to be slow.",
        model=target.model,
    )


def _bad_reply(target: FailureContext, said: str) -> DenizenError:
    return Unavailable(
        f"The provider '{target.provider}' sent an answer that cannot be read.",
        code="model_bad_reply",
        why=target.clean(said),
        fix="Check that base_url points at the API, not at a web page.",
        model=target.model,
    )


def _bad_address(target: FailureContext, said: str) -> DenizenError:
    return NeedsAttention(
        f"The address of the provider '{target.provider}' is not usable.",
        code="model_address_invalid",
        why=target.clean(said),
        fix="Correct the provider's base_url.",
        model=target.model,
    )


def _key_refused(target: FailureContext, said: str = "") -> DenizenError:
    where = target.key_name or f"the api_key of the provider '{target.provider}'"
    return NeedsAttention(
        f"The provider '{target.provider}' refused the key.",
        code=KEY_REFUSED,
        why=said or "It does not accept the key, or the key may not use this model.",
        fix=f"Put a valid key into {where}.",
        model=target.model,
    )


def _unknown_model(target: FailureContext, said: str, hint: str = "") -> DenizenError:
    return NeedsAttention(
        f"The provider '{target.provider}' does not know the model '{target.model}'.",
        code="model_unknown",
        why=said,
        fix=hint or "Correct the model's name; check the provider's base_url if all models are unknown.",
        model=target.model,
    )


def _no_quota(target: FailureContext, said: str) -> DenizenError:
    return LimitExceeded(
        f"The quota or the credit at the provider '{target.provider}' is used up.",
        code="model_quota",
        why=said,
        fix="Top up the account, or use another model.",
        model=target.model,
    )


def _too_long(target: FailureContext, said: str) -> DenizenError:
    return InvalidInput(
        f"The conversation is too long for the model '{target.model}'.",
        code="context_too_long",
        why=said,
        fix="Lower the history limits of the agent, or use a model with a larger context.",
        model=target.model,
    )


def _rejected(target: FailureContext, said: str) -> DenizenError:
    return InvalidInput(
        f"The model '{target.model}' refused the request.",
        code="model_rejected",
        why=target.clean(said),
        model=target.model,
    )
