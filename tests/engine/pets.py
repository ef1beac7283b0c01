"""A house that mirrors what is written, and knows what it means, for tests of the archive."""

from __future__ import annotations

from denizen.domain.room import Post, Room
from denizen.engine.archive.post_embedding import NOW_S
from tests.engine.archive_house import Archived
from tests.engine.memory_house import WordEmbedder


class Pets:
    """To the embedder a dog, a cat and a pet are the same."""

    def __init__(self) -> None:
        self.embedder = WordEmbedder()
        self.house = Archived(embedder=self.embedder)

    async def say(self, *texts: str, who: str = "kim", room: Room | None = None) -> list[Post]:
        posts = [self.house.platform.write(room or self.house.general, who, text) for text in texts]
        await self.house.mirror.rooms(self.house.rooms())
        await self.house.mirror.keep(posts)
        await self.learn()
        return posts

    async def learn(self) -> None:
        """Until everything has its meaning."""
        while await self.house.meaning.do_some() == NOW_S:
            pass

    async def find(self, words: str, *, who: str = "kim", room: Room | None = None, limit: int = 20) -> list[str]:
        found = await self.house.ask(who, room or self.house.general).search(words, limit=limit)
        return [post.text for post in found]

    async def count(self) -> int:
        return await self.house.meaning.count()
