"""Actions that a workflow does for an event: nobody asked, so the account alone has to be allowed to do them."""

from __future__ import annotations

import pytest

from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed, Unavailable
from denizen.domain.principal import Principal, PrincipalKind
from denizen.testing.discord.state.permissions import DiscordPermission
from tests.adapters.discord.account_fixture import AccountFixture, running
from tests.adapters.discord.actions.ranked_members import add_ranked_members
from tests.memory_channel import enter_at_once

pytestmark = pytest.mark.anyio
LISTENER = Principal(PrincipalKind.LISTENER, "welcome.joined", "welcome.joined")


async def test_the_account_does_what_it_may_itself_in_the_server_of_the_event(sim: AccountFixture) -> None:
    add_ranked_members(sim, DiscordPermission.MANAGE_ROLES, DiscordPermission.MANAGE_ROLES)
    plain = sim.guild.add_role("swimmers")
    action = PlatformAction("add_role", {"member": str(sim.ben.id), "role": "swimmers", "reason": ""})
    async with running(sim) as (account, _):
        there = OnBehalfOf(LISTENER, Place("workflow", "welcome"), "k", str(sim.guild.id))
        done = await account.act(action, there, enter=enter_at_once)
        assert done["role"] == str(plain.id)
        assert plain.id in sim.guild.members[sim.ben.id].roles
        elsewhere = OnBehalfOf(LISTENER, Place("workflow", "welcome"), "k2", "1")
        with pytest.raises(Unavailable):
            await account.act(action, elsewhere, enter=enter_at_once)
        nowhere = OnBehalfOf(LISTENER, Place("workflow", "welcome"), "k3")
        with pytest.raises(NotAllowed):
            await account.act(action, nowhere, enter=enter_at_once)
