"""How the gateway packs what it sends: one stream for a connection, flushed after each payload.

discord.py asks for zstd as soon as some other package has brought `zstandard` along, and for zlib otherwise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib.util import find_spec

Pack = Callable[[bytes], bytes]

KNOWN = frozenset({"zlib-stream"} | ({"zstd-stream"} if find_spec("zstandard") else set[str]()))


def open_compression(name: str) -> Pack | None:
    """One of KNOWN; None for an empty name: everything is sent as it is."""
    if not name:
        return None
    if name == "zlib-stream":
        plain = zlib.compressobj()
        return lambda data: plain.compress(data) + plain.flush(zlib.Z_SYNC_FLUSH)
    import zstandard

    packer = zstandard.ZstdCompressor().compressobj()
    return lambda data: packer.compress(data) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
