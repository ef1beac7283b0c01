"""Reads RSS and Atom (`ports/feeds`). feedparser is loaded with the first feed."""

from denizen.adapters.feeds.reader import WebFeedReader

__all__ = ["WebFeedReader"]
