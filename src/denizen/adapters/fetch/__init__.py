"""Fetching from the web without being led to private addresses (`ports/fetch`, inventory VW5).

Read in this order: `addresses` decides about one address, `network` resolves, checks and connects, `fetcher` follows
redirects and reads answers. Made by the composition root; skills reach it through their context. httpx2 and httpcore2
are loaded at the first fetch.
"""

from denizen.adapters.fetch.fetcher import WebFetcher

__all__ = ["WebFetcher"]
