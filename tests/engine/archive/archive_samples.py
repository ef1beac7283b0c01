"""An archive that mirrors what is written, and embeds it, for tests of search."""

from __future__ import annotations

from denizen.domain.room import Post, Room
from denizen.engine.archive.post_embedding import NOW_S
from tests.engine.archive.archive_fixture import ArchiveFixture
from tests.engine.memory_fixture import WordEmbedder


class PetArchiveFixture:
    """To the embedder a dog, a cat and a pet are the same."""

    def __init__(self) -> None:
        self.embedder = WordEmbedder()
        self.engine = ArchiveFixture(embedder=self.embedder)

    async def say(self, *texts: str, who: str = "kim", room: Room | None = None) -> list[Post]:
        posts = [self.engine.platform.write(room or self.engine.general, who, text) for text in texts]
        await self.engine.mirror.rooms(self.engine.rooms())
        await self.engine.mirror.keep(posts)
        await self.learn()
        return posts

    async def learn(self) -> None:
        """Until everything has its meaning."""
        while await self.engine.post_embedder.do_some() == NOW_S:
            pass

    async def find(self, words: str, *, who: str = "kim", room: Room | None = None, limit: int = 20) -> list[str]:
        found = await self.engine.ask(who, room or self.engine.general).search(words, limit=limit)
        return [post.text for post in found]

    async def count(self) -> int:
        return await self.engine.post_embedder.count()
