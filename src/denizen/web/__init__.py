"""The HTTP surface: JSON under `/api`, the OpenAI-compatible API under `/v1`, and pages.

Knows the engine and the records of the SDK, but no adapters, settings or skills. `app` builds its dependencies.
"""
