"""Figures beside their aims, by hand: `python -m benchmarks [NAME ...]`, or `make bench`. Nothing is asserted.

    start turns growth size     whole processes, the default
    gate                        what the gate costs a call
    fleet                       turns a second with one worker and with two; an empty database as above, or none
    scale                       what a message and a turn cost a fleet that serves 200 servers; a database as above
    in_flight                   10,000 turns in flight and the loss of a worker; an empty database as above, or none
    move                        moving 200,000 posts from SQLite to Postgres under writes; an empty database, or none
    discord sources events      whole processes too; take minutes
    store durable               a part by itself, with more detail; `store postgresql://...` takes an empty database
    sandbox                     the read-only shell beside a bare `bash -c`, for this user and for an unprivileged one
    indexing                    40 MB of documents, while somebody else writes; a database as above
    embedding                   processor time and memory of a passage with the small model, one way beside another
    event_loop                  the longest callback of the event loop, while an account has much to do
    pages                       first paints in Chromium, opening a chat of 2,000 messages and scrolling through it
    search archive              100 000 passages, 100 000 posts by words and by meaning; a database as above
    citations                   false citations shown and right ones taken out, beside the rule before
    archive_quality             how often a search of talk finds the answer; `file:///.../locomo10.json` for LoCoMo too
    answers                     right answers of the built-in model from documents; a quarter of an hour
    memory                      what a memory finds of what it was told, beside plain BM25 and plain dense search
    retrieval retrieval_large retrieval_embedded
                                how often a search finds what was asked for, beside plain BM25 and plain dense search
    cranfield                   relevance on the Cranfield collection; `cranfield file:///FOLDER` with its files
    routing                     what a conversation costs whose questions are sorted; arithmetic
    cache                       what is read from providers' caches, and what a conversation costs; in no real time

Linux only; quote a figure in calibration loops, or beside its baseline, since machines differ and are shared.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks import (
    answers,
    archive,
    archive_quality,
    cache,
    citations,
    cranfield,
    discord_account,
    durable,
    embedding,
    event_loop,
    events,
    fleet,
    gate,
    growth,
    in_flight,
    indexing,
    memory,
    move,
    pages,
    retrieval,
    routing,
    sandbox,
    scale,
    search,
    size,
    sources,
    start,
    store,
    turns,
)
from benchmarks.figures import Figure, calibrate, show, show_head
from benchmarks.processes import Process, compile_sources, run_model

USUAL = ("size", "start", "turns", "growth")
WHOLE = (*USUAL, "gate", "discord", "sources", "events")
PARTS = {
    "answers": answers.main,
    "citations": citations.main,
    "store": store.main,
    "archive": archive.main,
    "archive_quality": archive_quality.main,
    "durable": durable.main,
    "fleet": fleet.main,
    "in_flight": in_flight.main,
    "move": move.main,
    "scale": scale.main,
    "event_loop": event_loop.main,
    "sandbox": sandbox.main,
    "cache": cache.main,
    "search": search.main,
    "indexing": indexing.main,
    "memory": memory.main,
    "pages": pages.main,
    "embedding": embedding.main,
    "retrieval": retrieval.main,
    "retrieval_large": retrieval.main_large,
    "retrieval_embedded": retrieval.main_embedded,
    "cranfield": cranfield.main,
    "routing": routing.main,
}


def measure(name: str, folder: Path, model: Process) -> Iterator[Figure]:
    match name:
        case "start":
            return start.measure(folder, model)
        case "turns":
            return turns.measure(folder, model)
        case "growth":
            return growth.measure(folder, model)
        case "discord":
            return discord_account.measure(folder, model)
        case "sources":
            return sources.measure(folder, model)
        case "events":
            return events.measure(folder, model)
        case "gate":
            return gate.measure()
        case _:
            return size.measure()


def whole(names: Iterable[str]) -> None:
    compile_sources()
    loop_ms = calibrate()
    show_head(loop_ms)
    with tempfile.TemporaryDirectory() as folder, run_model() as model:
        for name in names:
            show(measure(name, Path(folder), model), loop_ms)


def main(args: list[str]) -> int:
    names, urls = [arg for arg in args if "://" not in arg], [arg for arg in args if "://" in arg]
    unknown = set(names) - {*WHOLE, *PARTS}
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}\n\n{__doc__}", file=sys.stderr)
        return 2
    if not names or set(names) & set(WHOLE):
        whole([name for name in WHOLE if name in (names or USUAL)])
    for name, show_part in PARTS.items():
        if name in names:
            print(f"\n{name}")
            show_part(*urls[:1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
