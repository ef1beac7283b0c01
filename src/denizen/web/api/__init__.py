"""The routes that answer with JSON: a module for each topic, with its handlers and their descriptions.

The records of answers are in the SDK (`denizen_sdk`), and `web/http/openapi.py` makes the OpenAPI document of both.
Some modules have a path that their name does not tell: `sources` has `/api/snapshot`, `syncs` has
`/api/sandbox/snapshot`, `webhooks` has `/api/github/repos`, `service` has `/health` and `/api/openapi.json`.
"""
