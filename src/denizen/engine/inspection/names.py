"""The names that people know, of persons and rooms that are recorded by their ids."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from denizen.domain.conversation import Place
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.record import record
from denizen.domain.room import RoomKind
from denizen.engine.inspection.rooms import RoomInspection
from denizen.ports.store import Store

_ACCOUNT = f"{PrincipalKind.WEB_USER}:"


@record
class NameDirectory:
    """Reads names from the store: what has none there, such as a key or a schedule, is called by its id."""

    store: Store
    rooms: RoomInspection

    async def load_people(self, keys: Collection[str]) -> Mapping[str, str]:
        """Returns the names of persons by the keys of their principals."""
        accounts = {key for key in keys if key.startswith(_ACCOUNT)}
        async with self.store.work(write=False) as work:
            users = [await work.users.find(key.removeprefix(_ACCOUNT)) for key in sorted(accounts)]
            others = await work.statistics.find_names(sorted(set(keys) - accounts - {""}))
        return {**others, **{user.key: user.name for user in users if user is not None}}

    async def load_rooms(self, reader: Principal, places: Iterable[Place]) -> Mapping[str, str]:
        """Returns the names of the rooms at these places that the reader may see, by their ids."""
        names: dict[str, str] = {}
        for platform, room_id in sorted({(each.platform, each.thread or each.channel) for each in places}):
            room = await self.rooms.find_room(reader, platform, room_id)
            if room is not None and room.kind is not RoomKind.DIRECT:
                names[room_id] = " · ".join(filter(None, (room.guild_name, f"#{room.name}")))
        return names
