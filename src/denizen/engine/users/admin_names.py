"""The names at other sites that are on the list of admins, and who holds them.

Names change hands: whoever gives one up leaves it to anybody. So a name belongs to the account of the other site that
was first known here by it, whatever that account is called later, and makes nobody else an admin.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime

from denizen.domain.user import LinkedIdentity
from denizen.ports.store import UnitOfWork

_log = logging.getLogger("denizen.users")


def select_listed(identities: Sequence[LinkedIdentity], admins: Collection[str]) -> Sequence[LinkedIdentity]:
    """Returns the identities whose name is on the list."""
    return [each for each in identities if each.name in admins]


async def is_any_free(work: UnitOfWork, listed: Sequence[LinkedIdentity]) -> bool:
    """Tells whether nobody holds one of the names yet."""
    return None in [await work.admin_names.find_holder(each.name) for each in listed]


async def find_held(work: UnitOfWork, listed: Sequence[LinkedIdentity]) -> frozenset[str]:
    """Returns the names that these identities hold."""
    held = frozenset([each.name for each in listed if await work.admin_names.find_holder(each.name) == each.holder])
    for each in listed:
        if each.name not in held:
            _log.warning(
                "a name on the list of admins belongs to somebody else",
                extra={
                    "admin": each.name,
                    "user": each.user_id,
                    "why": "another account of that site had the name when it was first known here",
                    "fix": "If it is the right person, give them the role on the page Users.",
                },
            )
    return held


async def hold_names(work: UnitOfWork, listed: Sequence[LinkedIdentity], *, now: datetime) -> frozenset[str]:
    """Lets the identities hold the names that nobody holds. Returns those that they hold."""
    for each in listed:
        await work.admin_names.hold(each.name, each.holder, now=now)
    return await find_held(work, listed)
