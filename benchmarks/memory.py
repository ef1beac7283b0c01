"""How often the memory finds what a question is about, beside plain BM25 and plain dense search over the same facts.

python -m benchmarks memory                                       facts of `benchmarks.facts`
LOCOMO=.../locomo10.json python -m benchmarks memory              and the messages of LoCoMo, where somebody has it

Recall at 5: the share of what a question needs that is among the first five found, as many as come up in a prompt.
`words` and `fused` are what an agent finds without and with an embedding model. In one memory are all that is known of
one person, whose name is in every fact, or the facts about all of them.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.facts import PEOPLE, FactSet, Recalled, load_locomo, make_facts
from benchmarks.retrieval import Find, PlainBm25, RecordedEmbedder
from denizen.adapters.embed import MINILM, EmbeddingPlaces, LocalEmbedder
from denizen.adapters.store import open_store
from denizen.domain.clock import SystemClock
from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, SessionId, TurnId
from denizen.domain.memory import Memory, MemoryOrigin
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.vector import pack_vector
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.memory.keeper import MemoryKeeper, memory_namespace
from denizen.ports.memory import MEMORY_VECTORS
from denizen.ports.store import Store
from denizen.ports.toolset import CallScope
from tests.contracts.store.records import at

AGENT = AgentName("ada")
FIRST = 5


def open_scope(owner: str) -> CallScope:
    """Returns the scope of a talk in the terminal with somebody."""
    return CallScope(
        agent=AGENT,
        principal=Principal(PrincipalKind.LOCAL, owner, owner),
        place=Place("terminal", "chat", "1"),
        session_id=SessionId("s"),
        turn_id=TurnId("t"),
    )


async def measure(name: str, asked: Sequence[tuple[Recalled, Find]]) -> None:
    found: list[float] = []
    first: list[bool] = []
    begun = time.perf_counter()
    for each, find in asked:
        keys = list(dict.fromkeys(await find(each.question)))[:FIRST]
        found.append(len(each.keys & set(keys)) / len(each.keys))
        first.append(bool(keys) and keys[0] in each.keys)
    took_ms = (time.perf_counter() - begun) * 1000 / len(asked)
    print(f"  {name:12} recall@{FIRST} {fmean(found):.3f}  first {fmean(first):.3f}  {took_ms:6.1f} ms")


async def compare(title: str, store: Store, embedder: RecordedEmbedder, sets: Sequence[FactSet]) -> None:
    """Each set is the memory of one person."""
    clock = SystemClock()
    by_words = MemoryKeeper(store, ConnectedAccounts(), clock)
    fused = MemoryKeeper(store, ConnectedAccounts(), clock, embedder=BudgetedEmbedder(lambda: embedder))
    finds: dict[str, list[tuple[Recalled, Find]]] = {}
    for number, some in enumerate(sets):
        scope = open_scope(f"{title}-{number}")
        memories = [
            Memory(
                f"{title}-{number} {key}",
                AGENT,
                scope.principal.key,
                text,
                MemoryOrigin(),
                scope.principal.key,
                at(hours),
            )
            for hours, (key, text) in enumerate(some.facts.items())
        ]
        await embedder.record([*some.facts.values(), *(each.question for each in some.questions)])
        async with store.work() as work:
            for memory in memories:
                await work.memories.add(memory)
        await fused.embed(memories)
        ways = {
            "words": _recall(by_words, scope),
            "meaning": _find_near(fused, scope, embedder),
            "fused": _recall(fused, scope),
            "plain BM25": PlainBm25(some.facts),
            "plain dense": _find_dense({key: embedder.vectors[text] for key, text in some.facts.items()}, embedder),
        }
        for name, find in ways.items():
            finds.setdefault(name, []).extend((each, find) for each in some.questions)
    facts = sum(len(each.facts) for each in sets)
    questions = sum(len(each.questions) for each in sets)
    print(f"{title}: {facts} facts in {len(sets)} memories, {questions} questions")
    for name, asked in finds.items():
        await measure(name, asked)


def _recall(keeper: MemoryKeeper, scope: CallScope) -> Find:
    async def find(question: str) -> list[str]:
        return [memory.id.partition(" ")[2] for memory in await keeper.recall(scope, question, limit=FIRST)]

    return find


def _find_near(keeper: MemoryKeeper, scope: CallScope, embedder: RecordedEmbedder) -> Find:
    namespace = memory_namespace(AGENT, scope.principal.key)

    async def find(question: str) -> list[str]:
        asked = pack_vector(embedder.vectors[question])
        async with keeper.store.work(write=False) as work:
            near = await work.vectors.find_nearest(MEMORY_VECTORS, [namespace], embedder.name, asked, limit=FIRST)
        return [each.key.partition(" ")[2] for each in near]

    return find


def _find_dense(vectors: Mapping[str, list[float]], embedder: RecordedEmbedder) -> Find:
    async def find(question: str) -> list[str]:
        asked = embedder.vectors[question]
        return sorted(vectors, key=lambda key: -sum(a * b for a, b in zip(asked, vectors[key], strict=True)))

    return find


async def run(url: str, home: Path) -> None:
    store = await open_store(url, clock=SystemClock())
    embedder = RecordedEmbedder(LocalEmbedder(MINILM, EmbeddingPlaces(home)))
    made = make_facts()
    await compare("one-person-each", store, embedder, [made.of_person(person) for person in PEOPLE])
    await compare("all-together", store, embedder, [made])
    path = os.environ.get("LOCOMO")
    if path:
        await compare("LoCoMo", store, embedder, list(load_locomo(Path(path))))
    await store.aclose()


def main(url: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(url or f"sqlite:///{folder}/store.db", Path(folder)))
