"""The section `telemetry`: metrics, traces and reports of faults."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from denizen.app.settings.fields import Number, Secret, Section, SomeText, Text, Whole, default_section, refuse

_URL = re.compile(r"https?://[^\s/@]+(?:/\S*)?")


class MetricsSection(Section):
    """Metrics for Prometheus, at `/metrics` on a port of their own."""

    enabled: bool = Field(default=False, description="Whether they are served. It counts from the next start on.")
    host: SomeText = Field(default="127.0.0.1", description="Address to listen on; beyond this machine, set a key.")
    port: Whole = Field(default=9464, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    key: Secret = Field(default=None, description="What Prometheus sends as a bearer token. Empty: nothing is asked.")


class OtlpSection(Section):
    """Traces and metrics for a collector of OpenTelemetry, by OTLP over HTTP. It needs the extra `otel`."""

    endpoint: Text = Field(
        default="", description="Address of the collector, such as http://127.0.0.1:4318; empty: off."
    )
    key: Secret = Field(default=None, description="Sent as a bearer token, where the collector wants one.")
    sample: Number = Field(default=1.0, ge=0.0, le=1.0, description="The part of the turns whose traces are sent.")

    @field_validator("endpoint")
    @classmethod
    def _address(cls, endpoint: str) -> str:
        if endpoint and not _URL.fullmatch(endpoint):
            raise refuse("this is not the address of a collector.", "Write it like http://127.0.0.1:4318.")
        return endpoint


class FaultReportsSection(Section):
    """Reports of faults of the program to a server that speaks the protocol of Sentry. It needs the extra `sentry`.
    A report has the traceback without the values of variables, and nothing that anybody said.
    """

    dsn: Secret = Field(default=None, description="Where to send them, such as ${SENTRY_DSN}. Empty: off.")
    environment: Text = Field(default="", description="Name of this installation in the reports.")


class TelemetrySection(Section):
    """Telemetry about the work of this server. All of it is off unless it is written here."""

    metrics: MetricsSection = default_section()
    otlp: OtlpSection = default_section()
    faults: FaultReportsSection = default_section()
