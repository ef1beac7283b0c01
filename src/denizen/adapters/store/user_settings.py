"""What users chose for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache

import sqlalchemy as sa

from denizen.adapters.store.dialect import InsertInto
from denizen.adapters.store.tables.settings import user_settings
from denizen.adapters.store.unit import Unit
from denizen.domain.json import Json

_USER_KEY = (user_settings.c.principal, user_settings.c.key)

_USER_SETTINGS = (
    sa.select(user_settings.c.key, user_settings.c.value)
    .where(user_settings.c.principal == sa.bindparam("principal"))
    .order_by(user_settings.c.key)
)
_REMOVE_SETTING = sa.delete(user_settings).where(
    user_settings.c.principal == sa.bindparam("principal"), user_settings.c.key == sa.bindparam("key")
)


@cache
def _put_setting(insert: InsertInto) -> sa.Executable:
    statement = insert(user_settings)
    changed = {"value": statement.excluded.value, "updated_at": statement.excluded.updated_at}
    return statement.on_conflict_do_update(index_elements=_USER_KEY, set_=changed).inline()


class SqlUserSettings:
    """`denizen.ports.store.UserSettings`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    async def get(self, principal: str) -> Mapping[str, Json]:
        return await self._unit.read(
            lambda connection: {row.key: row.value for row in connection.execute(_USER_SETTINGS, {"principal": principal})}
        )

    async def put(self, principal: str, key: str, value: Json, *, now: datetime) -> None:
        which = {"principal": principal, "key": key}
        put = _put_setting(self._unit.dialect.insert)

        def job(connection: sa.Connection) -> None:
            if value is None:
                connection.execute(_REMOVE_SETTING, which)
            else:
                connection.execute(put, which | {"value": value, "updated_at": now})

        await self._unit.write(job)
