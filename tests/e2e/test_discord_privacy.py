"""An agent looks up for one person only the posts that everybody who reads the answer may see, by the permissions
of that moment (promise 3); and what one person chose for themselves holds for nobody else.
"""

from __future__ import annotations

import pytest

from denizen.testing.discord import SimChannel, SimUser
from denizen.testing.model_server import ModelAnswer, ModelCall, ModelServer, model_server
from tests.e2e.discord import DiscordDeployment

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

SECRET = "heron-42"
NOTE_DOWN = (
    ModelAnswer(
        calls=[
            ModelCall("remember", {"text": f"The launch code is {SECRET}."}),
            ModelCall("projects", {"action": "create", "name": "Moon"}),
        ]
    ),
    ModelAnswer(
        calls=[
            ModelCall(
                "documents",
                {"action": "create", "name": "Launch", "text": f"The launch code is {SECRET}.", "project": "Moon"},
            )
        ]
    ),
)
LOOK_BACK = ModelAnswer(
    calls=[
        ModelCall("recall", {"words": "launch code"}),
        ModelCall("documents", {"action": "get", "name": "Launch", "project": "Moon"}),
        ModelCall("documents", {"action": "list"}),
    ]
)
LOOK_UP = ModelAnswer(
    calls=[ModelCall("search_archive", {"words": "launch"}), ModelCall("read_history", {"room": "staff"})]
)


async def tell_secret(deployment: DiscordDeployment, where: SimChannel) -> None:
    """Ana says it there, and the archive has it."""
    deployment.world.say(deployment.ana, where, f"The launch code is {SECRET}.")
    await deployment.until(lambda: deployment.rows(f"SELECT 1 FROM posts WHERE text LIKE '%{SECRET}%'"))


async def ask_for_secret(deployment: DiscordDeployment, who: SimUser, where: SimChannel) -> str:
    """Somebody asks there for the launch code, and the model looks it up: everything that it reads then."""
    answered = len(deployment.said(where))
    begun = len(deployment.requests)
    deployment.script(LOOK_UP, "I have looked.")
    deployment.world.say(who, where, f"{deployment.ada.mention} what is the code for it?")
    await deployment.until(lambda: len(deployment.said(where)) == answered + 1)
    assert deployment.said(where)[-1] == "I have looked."
    results = [m["content"] for m in deployment.requests[-1].body["messages"] if m["role"] == "tool"]
    assert len(deployment.requests) == begun + 2
    return "\n".join(map(str, results[-2:]))


@pytest.mark.proves("V-skill-discord-search", "P3")
async def test_what_was_said_in_a_private_channel_is_found_only_where_all_readers_may_read_it(
    deployment: DiscordDeployment,
) -> None:
    crew = deployment.guild.add_role("crew")
    staff = deployment.guild.add_channel("staff", private_to=[crew, deployment.ada.user])
    anas = deployment.world.open_dm(deployment.ana, deployment.ada.user)
    bens = deployment.world.open_dm(deployment.ben, deployment.ada.user)
    deployment.configure()
    async with deployment.run():
        await tell_secret(deployment, staff)
        for who, where in (
            (deployment.ben, deployment.general),
            (deployment.ana, deployment.general),
            (deployment.ben, bens),
        ):
            assert SECRET not in await ask_for_secret(deployment, who, where)
        assert SECRET not in str([request.body for request in deployment.requests])
        assert (await ask_for_secret(deployment, deployment.ana, staff)).count(SECRET) == 2
        assert (await ask_for_secret(deployment, deployment.ana, anas)).count(SECRET) == 2


@pytest.mark.proves("P3")
async def test_what_was_remembered_or_written_down_in_a_private_channel_comes_up_only_where_all_readers_may_read_it(
    deployment: DiscordDeployment,
) -> None:
    crew = deployment.guild.add_role("crew")
    staff = deployment.guild.add_channel("staff", private_to=[crew, deployment.ada.user])
    anas = deployment.world.open_dm(deployment.ana, deployment.ada.user)
    deployment.configure(rest="tools: {projects: {enabled: true}}\n")

    async def talk(where: SimChannel, *calls: ModelAnswer) -> str:
        """Ana asks for it there: everything that the model reads then, its whole prompt included."""
        answered, begun = len(deployment.said(where)), len(deployment.requests)
        deployment.script(*calls, "Done.")
        deployment.world.say(deployment.ana, where, f"{deployment.ada.mention} what about the code for the start?")
        await deployment.until(lambda: len(deployment.said(where)) == answered + 1)
        assert deployment.said(where)[-1] == "Done."
        return str([request.body["messages"] for request in deployment.requests[begun:]])

    async with deployment.run():
        await talk(staff, *NOTE_DOWN)
        assert SECRET not in await talk(deployment.general, LOOK_BACK)
        for where in (staff, anas):
            await talk(where, LOOK_BACK)
            read = [m["content"] for m in deployment.requests[-1].body["messages"] if m["role"] == "tool"]
            recalled, document = map(str, read[-3:-1])
            assert SECRET in recalled
            assert SECRET in document
        assert SECRET not in await talk(deployment.general, LOOK_BACK)


async def test_a_channel_that_is_opened_or_closed_is_that_for_the_next_answer(deployment: DiscordDeployment) -> None:
    staff = deployment.guild.add_channel("staff", private_to=[deployment.ada.user])
    closed = staff.overwrites[deployment.guild.id]
    channels = deployment.discord.acts.channels
    deployment.configure()
    async with deployment.run():
        await tell_secret(deployment, staff)
        assert SECRET not in await ask_for_secret(deployment, deployment.ben, deployment.general)
        channels.delete_overwrite(deployment.ana, staff, deployment.guild.id)
        assert SECRET in await ask_for_secret(deployment, deployment.ben, deployment.general)
        channels.set_overwrite(deployment.ana, staff, closed)
        assert SECRET not in await ask_for_secret(deployment, deployment.ben, deployment.general)


async def test_roles_that_are_given_or_taken_and_people_who_come_or_go_count_for_the_next_answer(
    deployment: DiscordDeployment,
) -> None:
    crew = deployment.guild.add_role("crew")
    staff = deployment.guild.add_channel("staff", private_to=[crew, deployment.ada.user])
    deployment.configure()
    async with deployment.run():
        await tell_secret(deployment, staff)
        assert SECRET not in await ask_for_secret(deployment, deployment.ben, deployment.general)
        deployment.guild.set_roles(deployment.ben, [crew])
        assert SECRET in await ask_for_secret(deployment, deployment.ben, deployment.general)
        stranger = deployment.world.add_person("Carl")
        deployment.guild.join(stranger)
        assert SECRET not in await ask_for_secret(deployment, deployment.ben, deployment.general)
        deployment.guild.leave(stranger)
        assert SECRET in await ask_for_secret(deployment, deployment.ben, deployment.general)
        deployment.guild.set_roles(deployment.ben, [])
        assert SECRET not in await ask_for_secret(deployment, deployment.ben, deployment.general)


@pytest.mark.proves("V15", "V17")
async def test_the_model_that_somebody_chose_answers_them_alone_everywhere_and_after_a_restart(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(aliases={"fast": "local/quick", "quality": "local/fine"})
    direct = deployment.world.open_dm(deployment.ana, deployment.ada.user)

    async def model_for(who: SimUser, where: SimChannel) -> str:
        answered = len(deployment.said(where))
        deployment.script("Yes.")
        deployment.world.say(who, where, f"{deployment.ada.mention} are you there?")
        await deployment.until(lambda: len(deployment.said(where)) == answered + 1)
        return deployment.requests[-1].body["model"]

    async def choose(who: SimUser, command: str, **options: str) -> str:
        return (await deployment.run_command(who, command, **options)).content

    async with deployment.run():
        await deployment.until(lambda: deployment.discord.requests_to("PUT", "commands"))
        assert "local/quick" in await choose(deployment.ana, "model set", model="fast")
        assert await model_for(deployment.ana, deployment.general) == "quick"
        assert await model_for(deployment.ben, deployment.general) == "scripted"
        assert await model_for(deployment.ana, direct) == "quick"
        assert "local/fine" in await choose(deployment.ben, "mode set", mode="quality")
        assert await model_for(deployment.ana, deployment.general) == "quick"
        assert await model_for(deployment.ben, deployment.general) == "fine"
    async with deployment.run():
        assert await model_for(deployment.ana, deployment.general) == "quick"
        assert await model_for(deployment.ben, deployment.general) == "fine"
        await choose(deployment.ana, "model remove")
        assert await model_for(deployment.ana, deployment.general) == "scripted"
        assert await model_for(deployment.ben, deployment.general) == "fine"


@pytest.mark.proves("V16", "VW7")
async def test_a_user_is_given_a_key_and_an_address_of_their_own_by_name_and_without_them_the_agents_own_count(
    deployment: DiscordDeployment,
) -> None:
    async with model_server() as other:
        deployment.configure(
            conduct=[f'owners: ["{deployment.ana.id}"]'],
            providers={"bens": other.openai_url},
            keys={"local": "sk-of-the-agent", "bens": "sk-of-ben"},
            aliases={"fast": "local/quick"},
        )

        async def ask(who: SimUser, server: ModelServer) -> tuple[str, str]:
            """The key and the model with which that server was asked."""
            begun, said = len(server.requests), len(deployment.said())
            server.script(ModelAnswer(text="Yes."))
            deployment.ask(who, "are you there?")
            await deployment.until(lambda: len(deployment.said()) == said + 1)
            assert len(server.requests) == begun + 1
            return server.requests[-1].headers["authorization"], server.requests[-1].body["model"]

        own, agents = ("Bearer sk-of-ben", "large"), "Bearer sk-of-the-agent"
        async with deployment.run():
            await deployment.until(lambda: deployment.discord.requests_to("PUT", "commands"))
            answered = await deployment.run_command(
                deployment.ana, "model set", model="bens/large", user=str(deployment.ben.id)
            )
            assert "`bens/large` answers" in answered.content and answered.ephemeral
            assert await ask(deployment.ben, other) == own
            assert await ask(deployment.ana, deployment.provider.server) == (agents, "scripted")
            await deployment.run_command(deployment.ben, "model set", model="fast")
            assert await ask(deployment.ben, deployment.provider.server) == (agents, "quick")
            refused = await deployment.run_command(deployment.ben, "model set", model="bens/large")
            assert "Models without an alias are for admins" in refused.content


@pytest.mark.proves("V24")
async def test_an_owner_keeps_the_list_of_those_who_may_talk_and_others_are_refused(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'])
    async with deployment.run():
        await deployment.until(lambda: deployment.discord.requests_to("PUT", "commands"))

        async def ask(who: SimUser) -> str:
            said = len(deployment.said())
            deployment.ask(who, "are you there?")
            await deployment.until(lambda: len(deployment.said()) == said + 1)
            return deployment.said()[-1]

        refused = await deployment.run_command(deployment.ben, "allow add", user=str(deployment.ben.id))
        assert "is for admins only" in refused.content
        await deployment.run_command(deployment.ana, "allow add", user=str(deployment.ana.id))
        assert "I may not talk with you here" in await ask(deployment.ben)
        assert not deployment.requests
        await deployment.run_command(deployment.ana, "allow add", user=str(deployment.ben.id))
        assert str(deployment.ben.id) in (await deployment.run_command(deployment.ana, "allow list")).content
        deployment.script("Yes.")
        assert await ask(deployment.ben) == "Yes."
        await deployment.run_command(deployment.ana, "allow remove", user=str(deployment.ben.id))
        deployment.ask(deployment.ben, "and now?")
        deployment.script("Hello, Ana.")
        assert await ask(deployment.ana) == "Hello, Ana."
        assert len(deployment.requests) == 2


@pytest.mark.proves("V28", "V2", "V27")
async def test_a_start_backfills_what_was_said_before_and_mirrors_what_is_said_edited_and_deleted_then(
    deployment: DiscordDeployment,
) -> None:
    world, room = deployment.world, deployment.general
    for number in range(150):
        world.say(deployment.ben, room, f"old {number}")
    deployment.configure()

    def archived(text: str, also: str = "1") -> bool:
        return bool(deployment.rows(f"SELECT 1 FROM posts WHERE text = '{text}' AND {also}"))

    async with deployment.run():
        await deployment.until(lambda: archived("old 0") and archived("old 149"))
        live = world.say(deployment.ben, room, "first words")
        await deployment.until(lambda: archived("first words"))
        world.edit(live, "second words")
        await deployment.until(lambda: archived("second words"))
        world.edit(live, "third words")
        await deployment.until(lambda: archived("third words"))
        world.delete(live)
        await deployment.until(lambda: archived("third words", "deleted_at IS NOT NULL"))
        search = ModelCall("search_archive", {"words": "77 old"}, id="c1")
        deployment.script(ModelAnswer(calls=[search, ModelCall("read_edits", {"message": str(live.id)})]), "Found.")
        deployment.ask(deployment.ben, "what did I say?")
        await deployment.until(lambda: deployment.said() == ["Found."])
    found, edits = [str(m["content"]) for m in deployment.requests[-1].body["messages"] if m["role"] == "tool"]
    assert "old 77" in found
    places = [edits.index(words) for words in ("first words", "second words", "third words", "(deleted)")]
    assert places == sorted(places)


@pytest.mark.proves("V29")
async def test_a_room_is_read_from_discord_only_while_the_archive_has_nothing_of_it(
    deployment: DiscordDeployment,
) -> None:
    attic = deployment.guild.add_channel("attic")
    for text in ("an old lamp", "an old door"):
        deployment.world.say(deployment.ben, attic, text)
    deployment.configure(rest="archive: {backfill: false}\n")

    def count_reads() -> int:
        return len(deployment.discord.requests_to("GET", f"/channels/{attic.id}/messages"))

    def search(words: str) -> ModelAnswer:
        return ModelAnswer(calls=[ModelCall("search_archive", {"words": words, "room": "attic"})])

    async with deployment.run():
        assert not deployment.rows("SELECT 1 FROM posts WHERE text LIKE 'an old %'")
        before = count_reads()
        deployment.script(search("lamp"), search("door"), search("window"), "Found.")
        deployment.ask(deployment.ana, "what is in the attic?")
        await deployment.until(lambda: deployment.said() == ["Found."])
    lamp, door, window = [str(m["content"]) for m in deployment.requests[-1].body["messages"] if m["role"] == "tool"]
    assert "an old lamp" in lamp and "an old door" in door
    assert window.startswith("No message was found")
    assert count_reads() == before + 1
