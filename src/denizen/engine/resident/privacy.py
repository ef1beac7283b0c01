"""What `/memory` needs: everything that keeps a user's words, and its end (`engine/commands/scene.ArchiveRemoval`)."""

from __future__ import annotations

from dataclasses import dataclass

from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.archive.removal import ArchiveRemoval
from denizen.engine.commands.scene import Forgotten, Kept
from denizen.ports.store import Store


@dataclass(frozen=True, slots=True)
class KeptWords:
    """Of one user of a platform, by the platform's id."""

    store: Store
    mirror: ArchiveMirror
    privacy: ArchiveRemoval

    async def describe(self, platform: str, user_id: str) -> Kept:
        chosen = await self.mirror.load_opt_outs(platform)
        async with self.store.work(write=False) as work:
            kept = await work.archive.count_author(platform, user_id)
        is_out = user_id in chosen.users or user_id in self.mirror.policy.opt_outs.users
        return Kept(kept.posts, kept.messages, is_out)

    async def forget(self, platform: str, user_id: str) -> Forgotten:
        return Forgotten(await self.privacy.forget_user(platform, user_id))

    async def opt_out(self, platform: str, user_id: str) -> None:
        await self.privacy.opt_out_user(platform, user_id)

    async def opt_in(self, platform: str, user_id: str) -> None:
        await self.privacy.opt_in_user(platform, user_id)
