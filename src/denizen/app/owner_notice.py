"""Tells owners of something that they should know, where they are: in the alert channel, or in direct messages."""

from __future__ import annotations

import logging

import anyio

from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, list_fields
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.engine.outbox.outbox import DeliveryOutbox
from denizen.engine.outbox.plan import Announcement

MAX_OWNERS = 3
DIRECT_TIMEOUT_S = 10.0

_log = logging.getLogger("denizen.server")


async def tell_owners(
    runtime: Runtime, channels: ConnectedAccounts, outbox: DeliveryOutbox, text: str, key: str
) -> bool:
    """Owes the text, once for each `key`. Returns False where nobody can be reached now, and a later try may help."""
    alert_place, policies = runtime.current.policy.observer.alert_place, runtime.current.account_policies
    if alert_place is None and not any(each.staff.owners for each in policies.values()):
        return True
    for channel in channels.list_all():
        policy = policies.get((channel.platform, channel.agent))
        owners = sorted(policy.staff.owners)[:MAX_OWNERS] if policy else []
        places: list[Place] = []
        if alert_place is not None and alert_place.platform == channel.platform:
            places, owners = [alert_place], []
        for owner in owners:
            try:
                with anyio.fail_after(DIRECT_TIMEOUT_S):
                    places.append(await channel.open_direct(owner))
            except (DenizenError, TimeoutError) as error:
                about = {"user": owner, **list_fields(error)}
                _log.warning("an owner cannot be written to: %s", error, extra=about)
        for number, place in enumerate(places):
            await outbox.say(channel, Announcement(place, "", text, key=f"{key}:{number}"))
        if places:
            return True
    return False
