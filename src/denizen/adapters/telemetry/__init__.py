"""Telemetry for Prometheus and for OpenTelemetry, and wrappers that measure the store and the models.

`prometheus` and `otlp` implement `denizen.ports.telemetry`; `measured` wraps ports so that what passes through them is
measured, whoever uses them.
"""
