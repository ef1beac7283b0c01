"""The HTTP surface: JSON under `/api`, the OpenAI-compatible API under `/v1`, and pages. Knows the engine and the wire
types, not adapters, settings or skills; `app` builds what it needs.
"""
