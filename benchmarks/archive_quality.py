"""How often a search of talk finds the message that answers, beside plain BM25 and plain dense search.

python -m benchmarks archive_quality                              a made-up community (`benchmarks.dialogue`)
python -m benchmarks archive_quality file:///data/locomo10.json   LoCoMo too, each conversation as a room

Everybody reads every room, and each question is asked as people ask it. `as the tool finds it` also understands whom,
which room and when it means; its `shown` counts an answer that stands in the excerpt, found or beside what was found.
Plain BM25 is FTS5 over all words of the question, plain dense search compares whole vectors of every message. Vectors
are the small model's, about 20 ms a message.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from benchmarks.dialogue import make_dialogue
from benchmarks.locomo import read_locomo
from benchmarks.retrieval import PlainBm25, RecordedEmbedder
from denizen.adapters.embed import MINILM, EmbeddingPlaces, LocalEmbedder
from denizen.domain.message import Author
from denizen.domain.room import Post, Room
from denizen.domain.vector import pack_vector
from denizen.engine.archive.post_embedding import NOW_S
from denizen.ports.archive import POST_VECTORS, post_vector_key, room_namespace
from tests.engine.archive.archive_fixture import DISCORD, ArchiveFixture

PLACES = (1, 5, 10)
ASKED_BY = "asker"

Find = Callable[["AskedQuestion"], Awaitable[Sequence[AbstractSet[str]]]]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, with the ids of the posts that answer it. `room` limits the search to one; empty for all."""

    text: str
    evidence: frozenset[str]
    kind: str
    room: str = ""


@dataclass(frozen=True, slots=True)
class Talk:
    """The posts of some rooms until `now`, and the questions about them."""

    rooms: Sequence[Room]
    posts: Sequence[Post]
    questions: Sequence[AskedQuestion]
    now: datetime


class TalkSearches:
    """The ways to search one talk."""

    def __init__(self, talk: Talk, home: Path) -> None:
        self._talk = talk
        self._embedder = RecordedEmbedder(LocalEmbedder(MINILM, EmbeddingPlaces(home)))
        self._archive = ArchiveFixture(embedder=self._embedder)
        self._vectors: dict[str, list[float]] = {}
        self._plain = {
            room: PlainBm25({post.id: post.text for post in talk.posts if room in {"", post.room}})
            for room in {asked.room for asked in talk.questions}
        }

    async def open(self) -> None:
        archive, talk = self._archive, self._talk
        archive.clock.time = talk.now
        archive.platform.add_person(ASKED_BY, "Asker")
        for room in talk.rooms:
            archive.platform.rooms[room.id] = room
        await archive.mirror.rooms(talk.rooms)
        for start in range(0, len(talk.posts), 500):
            await archive.mirror.keep(talk.posts[start : start + 500])
        texts = [post.text for post in talk.posts]
        await self._embedder.record(list(dict.fromkeys([*texts, *(asked.text for asked in talk.questions)])))
        self._vectors = {post.id: self._embedder.vectors[post.text] for post in talk.posts}
        while await archive.post_embedder.do_some() == NOW_S:
            pass

    @property
    def ways(self) -> Mapping[str, Find]:
        return {
            "words": self._find_by_words,
            "meaning": self._find_by_meaning,
            "words and meaning": self._find_fused,
            "as the tool finds it": self._find_as_tool,
            "as the tool, shown": self._find_shown,
            "plain BM25": self._find_plain,
            "plain dense": self._find_dense,
        }

    async def _find_by_words(self, asked: AskedQuestion) -> Sequence[AbstractSet[str]]:
        self._archive.embedder = None
        try:
            return await self._find_fused(asked)
        finally:
            self._archive.embedder = self._embedder

    async def _find_fused(self, asked: AskedQuestion) -> Sequence[AbstractSet[str]]:
        ask = self._archive.ask(ASKED_BY, self._talk.rooms[0])
        return [{post.id} for post in await ask.search(asked.text, room=asked.room, limit=PLACES[-1])]

    async def _find_by_meaning(self, asked: AskedQuestion) -> Sequence[AbstractSet[str]]:
        rooms = [asked.room] if asked.room else [room.id for room in self._talk.rooms]
        vector = pack_vector(self._embedder.vectors[asked.text])
        async with self._archive.store.work(write=False) as work:
            near = await work.vectors.find_nearest(
                POST_VECTORS, [room_namespace(DISCORD, room) for room in rooms], self._embedder.name, vector, limit=10
            )
        start = len(post_vector_key(DISCORD, ""))
        return [{each.key[start:]} for each in near]

    async def _find_as_tool(self, asked: AskedQuestion) -> Sequence[AbstractSet[str]]:
        """Counts places as if each message of an excerpt that was found had its own."""
        ask = self._archive.ask(ASKED_BY, self._talk.rooms[0])
        found = await ask.find_talk(asked.text, room=asked.room, limit=PLACES[-1])
        return [{key} for talk in found.talk for key in sorted(talk.found)]

    async def _find_shown(self, asked: AskedQuestion) -> Sequence[AbstractSet[str]]:
        ask = self._archive.ask(ASKED_BY, self._talk.rooms[0])
        found = await ask.find_talk(asked.text, room=asked.room, limit=PLACES[-1])
        return [{post.id for post in talk.posts} for talk in found.talk]

    async def _find_plain(self, asked: AskedQuestion) -> Sequence[AbstractSet[str]]:
        return [{key} for key in await self._plain[asked.room](asked.text)]

    async def _find_dense(self, asked: AskedQuestion) -> Sequence[AbstractSet[str]]:
        vector = self._embedder.vectors[asked.text]
        among = [post.id for post in self._talk.posts if asked.room in {"", post.room}]
        scores = {key: sum(a * b for a, b in zip(vector, self._vectors[key], strict=True)) for key in among}
        return [{key} for key in sorted(among, key=lambda key: -scores[key])[: PLACES[-1]]]


async def measure(name: str, talk: Talk, home: Path) -> None:
    searches = TalkSearches(talk, home)
    await searches.open()
    kinds = list(dict.fromkeys(asked.kind for asked in talk.questions))
    print(f"{name}: {len(talk.posts):,} messages, {len(talk.questions)} questions")
    print(f"  {'':22} {' '.join(f'hit@{place:<3}' for place in PLACES)}  hit@{PLACES[1]} by kind: {', '.join(kinds)}")
    for way, find in searches.ways.items():
        hits = dict.fromkeys(PLACES, 0)
        by_kind: defaultdict[str, list[bool]] = defaultdict(list)
        for asked in talk.questions:
            found = await find(asked)
            for place in PLACES:
                is_hit = any(not asked.evidence.isdisjoint(ids) for ids in found[:place])
                hits[place] += is_hit
                if place == PLACES[1]:
                    by_kind[asked.kind].append(is_hit)
        shares = " ".join(f"{hits[place] / len(talk.questions):.3f}  " for place in PLACES)
        kinds_hit = " ".join(f"{sum(by_kind[kind]) / len(by_kind[kind]):.3f}" for kind in kinds)
        print(f"  {way:22} {shares}  {kinds_hit}", flush=True)


def load_community() -> Talk:
    dialogue = make_dialogue()
    names = list(dict.fromkeys(each.room for each in dialogue.said))
    rooms = [Room(DISCORD, str(10 + number), name) for number, name in enumerate(names)]
    by_name = {room.name: room.id for room in rooms}
    posts = [
        Post(
            DISCORD,
            str(10**6 + each.number),
            by_name[each.room],
            Author(each.author.casefold(), each.author),
            each.text,
            each.at,
            reply_to="" if each.replies_to is None else str(10**6 + each.replies_to),
        )
        for each in dialogue.said
    ]
    questions = [
        AskedQuestion(asked.text, frozenset(str(10**6 + number) for number in asked.evidence), asked.kind)
        for asked in dialogue.questions
    ]
    return Talk(rooms, posts, questions, dialogue.now)


def load_locomo(path: Path) -> Talk:
    """Each sample is a room of its own; pictures count with what they show, as text says it."""
    rooms: list[Room] = []
    posts: list[Post] = []
    questions: list[AskedQuestion] = []
    for number, sample in enumerate(read_locomo(path)):
        room = Room(DISCORD, str(10 + number), sample.id)
        rooms.append(room)
        ids = {turn.id: str(10**6 * (number + 1) + place) for place, turn in enumerate(sample.turns)}
        posts += [
            Post(
                DISCORD,
                ids[turn.id],
                room.id,
                Author(turn.speaker.casefold(), turn.speaker),
                f"{turn.text} {turn.caption}".strip(),
                turn.at + timedelta(seconds=place),
            )
            for place, turn in enumerate(sample.turns)
        ]
        questions += [
            AskedQuestion(asked.text, frozenset(ids[key] for key in asked.evidence), asked.kind.name.lower(), room.id)
            for asked in sample.answerable
        ]
    return Talk(rooms, posts, questions, max(post.created_at for post in posts) + timedelta(days=1))


def main(url: str = "") -> None:
    talks = {"a made-up community": load_community()}
    if url:
        talks["LoCoMo"] = load_locomo(Path(url2pathname(urlsplit(url).path)))
    for name, talk in talks.items():
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(measure(name, talk, Path(folder)))
