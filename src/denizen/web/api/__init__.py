"""JSON routes: the OpenAI-compatible API under `/v1`, chat and listings under `/api`, and the health answer."""
