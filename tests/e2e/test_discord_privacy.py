"""An agent looks up for one person only the posts that everybody who reads the answer may see, by the permissions
of that moment (promise 3); and what one person chose for themselves holds for nobody else.
"""

from __future__ import annotations

import pytest

from denizen.testing.discord import SimChannel, SimUser
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import Harbour

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

SECRET = "heron-42"
LOOK_UP = ModelAnswer(
    calls=[ModelCall("search_archive", {"words": "launch"}), ModelCall("read_history", {"room": "staff"})]
)


async def tell_secret(harbour: Harbour, where: SimChannel) -> None:
    """Ana says it there, and the archive has it."""
    harbour.world.say(harbour.ana, where, f"The launch code is {SECRET}.")
    await harbour.until(lambda: harbour.rows(f"SELECT 1 FROM posts WHERE text LIKE '%{SECRET}%'"))


async def look_up(harbour: Harbour, who: SimUser, where: SimChannel) -> str:
    """Somebody asks there for the launch code, and the model looks it up: everything that it reads then."""
    answered = len(harbour.said(where))
    begun = len(harbour.requests)
    harbour.script(LOOK_UP, "I have looked.")
    harbour.world.say(who, where, f"{harbour.ada.mention} what is the code for it?")
    await harbour.until(lambda: len(harbour.said(where)) == answered + 1)
    assert harbour.said(where)[-1] == "I have looked."
    results = [m["content"] for m in harbour.requests[-1].body["messages"] if m["role"] == "tool"]
    assert len(harbour.requests) == begun + 2
    return "\n".join(map(str, results[-2:]))


async def test_what_was_said_in_a_private_channel_is_found_only_where_all_readers_may_read_it(harbour: Harbour) -> None:
    crew = harbour.guild.add_role("crew")
    staff = harbour.guild.add_channel("staff", private_to=[crew, harbour.ada.user])
    anas = harbour.world.open_dm(harbour.ana, harbour.ada.user)
    bens = harbour.world.open_dm(harbour.ben, harbour.ada.user)
    harbour.configure()
    async with harbour.run():
        await tell_secret(harbour, staff)
        for who, where in ((harbour.ben, harbour.general), (harbour.ana, harbour.general), (harbour.ben, bens)):
            assert SECRET not in await look_up(harbour, who, where)
        assert SECRET not in str([request.body for request in harbour.requests])
        assert (await look_up(harbour, harbour.ana, staff)).count(SECRET) == 2
        assert (await look_up(harbour, harbour.ana, anas)).count(SECRET) == 2


async def test_a_channel_that_is_opened_or_closed_is_that_for_the_next_answer(harbour: Harbour) -> None:
    staff = harbour.guild.add_channel("staff", private_to=[harbour.ada.user])
    closed = staff.overwrites[harbour.guild.id]
    channels = harbour.discord.acts.channels
    harbour.configure()
    async with harbour.run():
        await tell_secret(harbour, staff)
        assert SECRET not in await look_up(harbour, harbour.ben, harbour.general)
        channels.delete_overwrite(harbour.ana, staff, harbour.guild.id)
        assert SECRET in await look_up(harbour, harbour.ben, harbour.general)
        channels.set_overwrite(harbour.ana, staff, closed)
        assert SECRET not in await look_up(harbour, harbour.ben, harbour.general)


async def test_roles_that_are_given_or_taken_and_people_who_come_or_go_count_for_the_next_answer(
    harbour: Harbour,
) -> None:
    crew = harbour.guild.add_role("crew")
    staff = harbour.guild.add_channel("staff", private_to=[crew, harbour.ada.user])
    harbour.configure()
    async with harbour.run():
        await tell_secret(harbour, staff)
        assert SECRET not in await look_up(harbour, harbour.ben, harbour.general)
        harbour.guild.set_roles(harbour.ben, [crew])
        assert SECRET in await look_up(harbour, harbour.ben, harbour.general)
        stranger = harbour.world.add_person("Carl")
        harbour.guild.join(stranger)
        assert SECRET not in await look_up(harbour, harbour.ben, harbour.general)
        harbour.guild.leave(stranger)
        assert SECRET in await look_up(harbour, harbour.ben, harbour.general)
        harbour.guild.set_roles(harbour.ben, [])
        assert SECRET not in await look_up(harbour, harbour.ben, harbour.general)


@pytest.mark.proves("V15")
async def test_the_model_that_somebody_chose_answers_them_alone_everywhere_and_after_a_restart(
    harbour: Harbour,
) -> None:
    harbour.configure(aliases={"fast": "local/quick", "quality": "local/fine"})
    direct = harbour.world.open_dm(harbour.ana, harbour.ada.user)

    async def model_for(who: SimUser, where: SimChannel) -> str:
        answered = len(harbour.said(where))
        harbour.script("Yes.")
        harbour.world.say(who, where, f"{harbour.ada.mention} are you there?")
        await harbour.until(lambda: len(harbour.said(where)) == answered + 1)
        return harbour.requests[-1].body["model"]

    async def choose(who: SimUser, command: str, **options: str) -> str:
        done = await harbour.world.run_command(who, harbour.general, command, options, wait_s=30)
        return (await done.until_answered(30)).content

    async with harbour.run():
        await harbour.until(lambda: harbour.discord.requests_to("PUT", "commands"))
        assert "local/quick" in await choose(harbour.ana, "model set", model="fast")
        assert await model_for(harbour.ana, harbour.general) == "quick"
        assert await model_for(harbour.ben, harbour.general) == "scripted"
        assert await model_for(harbour.ana, direct) == "quick"
        assert "local/fine" in await choose(harbour.ben, "mode set", mode="quality")
        assert await model_for(harbour.ana, harbour.general) == "quick"
        assert await model_for(harbour.ben, harbour.general) == "fine"
    async with harbour.run():
        assert await model_for(harbour.ana, harbour.general) == "quick"
        assert await model_for(harbour.ben, harbour.general) == "fine"
        await choose(harbour.ana, "model remove")
        assert await model_for(harbour.ana, harbour.general) == "scripted"
        assert await model_for(harbour.ben, harbour.general) == "fine"
