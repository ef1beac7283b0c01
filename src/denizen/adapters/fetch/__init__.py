"""Fetches from the public web without being led to private addresses (`ports/fetch`).

Read in this order: `addresses` decides about one address, `http` resolves, checks, connects, follows redirects and
reads the response, `fetcher` adds deadlines and retries. The composition root makes the fetcher; skills reach it
through their context. httpx2 and httpcore2 are loaded at the first fetch.
"""

from denizen.adapters.fetch.fetcher import WebFetcher

__all__ = ["WebFetcher"]
