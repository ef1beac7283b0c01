"""Reports faults of the program to a server that speaks the protocol of Sentry.

A fault is an error with a traceback in the log: something that nobody has foreseen. Its report has the places of the
traceback and the log's own words, but neither the values of variables, nor lines of code, which may be an owner's, nor
the words of the exception, which may quote what somebody said. Known secrets are masked in all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

from sentry_sdk import Client
from sentry_sdk.types import Event
from sentry_sdk.utils import BadDsn, event_from_exception

from denizen.domain.errors import DenizenError, NeedsAttention

FLUSH_S = 3.0
_TAGS = ("reference", "tool", "turn")
"""Fields of the log that lead from a report to the place in the log."""

Mask = Callable[[str], str]


class FaultReporter(logging.Handler):
    """Reports what is logged with a traceback, from ERROR on. Raises NeedsAttention for a DSN that is none."""

    def __init__(self, dsn: str, mask: Mask, *, release: str, environment: str = "") -> None:
        self._mask = mask
        try:
            self._client = Client(
                dsn,
                release=f"denizen@{release}",
                environment=environment or "production",
                server_name="",
                default_integrations=False,
                auto_enabling_integrations=False,
                include_local_variables=False,
                include_source_context=False,
                max_breadcrumbs=0,
                auto_session_tracking=False,
                send_client_reports=False,
                before_send=lambda event, _hint: cast("Event", self._clean(event)),
            )
        except BadDsn as error:
            raise NeedsAttention(
                "The address for reports of faults is none.",
                code="dsn_invalid",
                fix="Copy the DSN of the project, such as https://KEY@HOST/1, or remove telemetry.faults.dsn.",
            ) from error
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is None or isinstance(error, DenizenError):
            return
        event, hint = event_from_exception(error, client_options=self._client.options)
        event["level"] = "error"
        event["logger"] = record.name
        event["logentry"] = {"message": str(record.msg)}
        fields = vars(record)
        event["tags"] = {name: str(fields[name]) for name in _TAGS if fields.get(name)}
        self._client.capture_event(event, hint)

    def _clean(self, event: Event) -> Any:  # noqa: ANN401 - any JSON
        for each in event.get("exception", {}).get("values", []):
            each["value"] = ""
            for frame in each.get("stacktrace", {}).get("frames", []):
                frame.pop("abs_path", None)  # it has the names of people's folders
        event.pop("extra", None)  # the arguments of the command line
        return self._masked(event)

    def _masked(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        match value:
            case str():
                return self._mask(value)
            case dict():
                return {key: self._masked(each) for key, each in cast("dict[str, Any]", value).items()}
            case list() | tuple():
                return [self._masked(each) for each in cast("list[Any]", value)]
            case _:
                return value

    def close(self) -> None:
        self._client.close(timeout=FLUSH_S)
        super().close()
