"""Voice channels: what is said there is recognized and written down, and texts are spoken there.

Loaded only where the skill `voice` is on: it needs the packages of the extra `voice`.
"""
