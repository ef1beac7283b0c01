"""Feeds that channels follow. `catalog` subscribes and lists, `access` does so for a call, `poller` reads and posts."""
