"""When and how an agent speaks."""

from __future__ import annotations

import re
from dataclasses import replace

import anyio
import pytest

from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.attention import AccountPolicy, AccountScope, Reactions, ReplyStyle, ThreadMode, TriggerPolicy
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.message import join_text
from denizen.domain.room import RoomKind
from denizen.engine.commands.dispatch import CommandDispatcher
from denizen.engine.listener.interactions import InteractionHandler
from denizen.engine.listener.turn_start import TurnStarter
from denizen.ports.model import ModelRequest
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.engine.engine_fixture import strip_date
from tests.engine.platform_fixture import ADA, World, open_platform

pytestmark = pytest.mark.anyio

BEN = AgentName("ben")


async def test_a_mention_is_answered_with_a_reply() -> None:
    async with open_platform() as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        sent = await fixture.sent()
    assert [(s.content.text, s.reply_to) for s in sent] == [("Hello.", asked.id)]


async def test_talk_among_others_is_passed_over() -> None:
    async with open_platform() as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "hello bob")
        assert await fixture.said() == []


async def test_the_same_event_twice_is_one_reply() -> None:
    async with open_platform() as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        fixture.world.platform.repeat(asked.id)
        await fixture.settled()
        fixture.world.platform.repeat(asked.id)
        assert await fixture.said() == ["Hello."]


@pytest.mark.proves("V11", "C14", "X-split", "LW7")
async def test_a_long_answer_comes_in_pieces_in_order_the_first_as_a_reply() -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "word " * 100 for n in range(12))
    async with open_platform(model=ScriptedModel(ScriptedReply(text))) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada tell me")
        sent = await fixture.sent()
    assert len(sent) > 2
    assert [s.reply_to for s in sent] == [asked.id] + [""] * (len(sent) - 1)
    assert all(len(s.content.text) <= 2000 for s in sent)
    assert "".join(" ".join(s.content.text for s in sent).split()) == "".join(text.split())


@pytest.mark.proves("L1")
async def test_the_model_is_told_who_speaks_and_sees_no_mention() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hi."))
    async with open_platform(model=model) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada what is @ada ?")
        await fixture.settled()
        fixture.world.platform.say(fixture.world.general, "bob", "@ada")
        assert await fixture.said() == ["Hi.", AccountPolicy().style.greeting]
        async with fixture.store.work(write=False) as work:
            [turn] = await work.turns.list_turns()
            stored = await work.messages.get(turn.trigger_id)
    assert (stored.author.name, stored.text) == ("Ana", "what is ?")
    assert strip_date(join_text(model.requests[0].messages[-1].parts)) == "Ana: what is ?"


@pytest.mark.proves("T34")
async def test_direct_messages_are_answered_unless_switched_off() -> None:
    async with open_platform() as fixture:
        room = fixture.world.direct("ana")
        fixture.world.platform.say(room, "ana", "hello?")
        assert await fixture.said() == ["Hello."]
    async with open_platform(account_policy=AccountPolicy(triggers=TriggerPolicy(direct_messages=False))) as fixture:
        fixture.world.platform.say(fixture.world.direct("ana"), "ana", "hello?")
        assert await fixture.said() == []


@pytest.mark.proves("T34")
async def test_a_mention_is_answered_in_allowed_guilds_only() -> None:
    for is_allowed in (True, False):
        world = World()
        scope = AccountScope(guilds=frozenset({world.general.guild if is_allowed else "another"}))
        async with open_platform(world, account_policy=AccountPolicy(scope=scope)) as fixture:
            world.platform.say(world.general, "ana", "@ada hello?")
            assert await fixture.said() == (["Hello."] if is_allowed else [])


@pytest.mark.proves("S34", "S35", "SW11")
async def test_a_thread_is_followed_after_a_mention_also_after_a_restart() -> None:
    world = World()
    thread = world.platform.add_room("help", RoomKind.THREAD, parent=world.general)
    async with open_platform(world) as fixture:
        world.platform.say(thread, "ana", "is anybody here?")
        await fixture.settled()
        world.platform.say(thread, "ana", "@ada are you?")
        await fixture.settled()
        world.platform.say(thread, "bob", "and what now?")
        assert len(await fixture.said()) == 2
    async with open_platform(world) as fixture:
        world.platform.say(thread, "bob", "still there?")
        assert len(await fixture.said()) == 1


async def test_a_thread_is_opened_for_a_mention_where_that_is_configured() -> None:
    async with open_platform(
        account_policy=AccountPolicy(triggers=TriggerPolicy(threads=ThreadMode.OPEN), style=ReplyStyle(preview=False))
    ) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada how do I start?")
        sent = await fixture.sent()
        assert sent[0].place.thread == asked.id and sent[0].reply_to == ""
        fixture.world.platform.say(fixture.world.platform.rooms[asked.id], "ana", "and then?")
        assert len(await fixture.said()) == 2


async def test_roles_keywords_replies_and_always_on_channels_are_triggers_when_configured() -> None:
    world = World()
    world.platform.add_role("7", "helpers")
    busy = world.platform.add_room("busy")
    account_policy = AccountPolicy(
        triggers=TriggerPolicy(
            mention_roles=frozenset({"7"}), keywords=(re.compile("denizen"),), always_channels=frozenset({busy.id})
        ),
        style=ReplyStyle(preview=False),
    )
    async with open_platform(world, account_policy=account_policy) as fixture:
        for room, text in ((world.general, "@helpers please"), (world.general, "denizen?"), (busy, "anything")):
            world.platform.say(room, "ana", text)
            await fixture.settled()
        answer = fixture.ada.sent[0]
        world.platform.say(world.general, "bob", "thanks", reply_to=answer.id)
        assert len(await fixture.said()) == 4


@pytest.mark.proves("C15", "C16")
async def test_agents_fall_silent_after_three_messages_in_a_row_until_a_human_writes() -> None:
    agents = {name: Agent(name, history=HistorySettings(recent_messages=0)) for name in (ADA, BEN)}
    async with open_platform(model=ScriptedModel(otherwise=ScriptedReply("@ada @ben go on")), agents=agents) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada say hello to Ben")
        await fixture.settled()
        assert sum(len(a.sent) for a in fixture.accounts.values()) == 3
        fixture.world.platform.say(fixture.world.platform.add_room("other"), "bot-ben", "@ada and here?")
        await fixture.settled()
        assert sum(len(a.sent) for a in fixture.accounts.values()) == 6, "elsewhere they still talk"
        fixture.world.platform.say(fixture.world.general, "bot-ben", "@ada and here?")
        await fixture.settled()
        assert sum(len(a.sent) for a in fixture.accounts.values()) == 6
        fixture.world.platform.say(fixture.world.general, "ana", "I am here, and ask nobody")
        await fixture.settled()
        assert sum(len(a.sent) for a in fixture.accounts.values()) == 6
        fixture.world.platform.say(fixture.world.general, "bot-ben", "@ada and now?")
        await fixture.settled()
        assert sum(len(a.sent) for a in fixture.accounts.values()) == 9
        fixture.world.platform.say(fixture.world.general, "ana", "@ada once more")
        await fixture.settled()
        assert sum(len(a.sent) for a in fixture.accounts.values()) == 12


@pytest.mark.proves("C16")
async def test_a_slot_is_taken_when_a_reply_starts_and_given_back_when_it_fails() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("Yes.", before=gate), otherwise=Unavailable("down"))
    async with open_platform(model=model) as fixture:
        fixture.world.platform.add_person("robo", "Robo", is_bot=True)

        async def count() -> int:
            async with fixture.store.work(write=False) as work:
                return await work.inbox.count_bot_replies("discord", fixture.world.general.id)

        fixture.world.platform.say(fixture.world.general, "robo", "@ada one")
        await gate.reached.wait()
        assert await count() == 1, "before there is an answer"
        gate.open.set()
        await fixture.settled()
        fixture.world.platform.say(fixture.world.general, "robo", "@ada two")
        await fixture.settled()
        await fixture.until(lambda: not fixture.ada.typing_in)
        assert await count() == 1, "the second one failed"


@pytest.mark.proves("C21", "C-config-message-limit", "C-config-toggles")
async def test_answers_are_split_at_the_accounts_length_and_blank_lines_stay_where_it_keeps_them() -> None:
    text = f"one\n\n\n\ntwo\n{'word ' * 30}"
    usual = ReplyStyle(preview=False)
    said: list[list[str]] = []
    for style in (usual, replace(usual, message_limit=60, keep_blank_lines=True)):
        async with open_platform(
            model=ScriptedModel(ScriptedReply(text)), account_policy=AccountPolicy(style=style)
        ) as fixture:
            fixture.world.platform.say(fixture.world.general, "ana", "@ada tell me")
            said.append(await fixture.said())
    assert said[0] == [f"one\n\ntwo\n{'word ' * 30}".strip()]
    assert said[1][0].startswith("one\n\n\n\ntwo")
    assert len(said[1]) > 2
    assert max(map(len, said[1])) <= 60


async def test_a_bot_is_not_answered_for_a_mere_reply() -> None:
    async with open_platform() as fixture:
        fixture.world.platform.add_person("crow", "Crow", is_bot=True)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello")
        await fixture.settled()
        fixture.world.platform.say(fixture.world.general, "crow", "caw", reply_to=fixture.ada.sent[0].id)
        assert len(await fixture.said()) == 1


@pytest.mark.proves("L2", "X-rate-limit")
async def test_the_hourly_limit_is_said_and_refused_requests_do_not_count() -> None:
    async with open_platform(per_hour=2) as fixture:
        for _ in range(4):
            fixture.world.platform.say(fixture.world.general, "ana", "@ada hello")
            await fixture.settled()
        said = await fixture.said()
        assert said[:2] == ["Hello.", "Hello."] and all("2 times within the hour" in text for text in said[2:])
        fixture.world.platform.say(fixture.world.general, "bob", "@ada hello")
        assert (await fixture.said())[-1] == "Hello."


@pytest.mark.proves("C17", "X-busy")
async def test_messages_to_a_busy_agent_wait_in_order_and_overflow_is_said() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("first", before=gate), otherwise=ScriptedReply("later"))
    async with open_platform(model=model) as fixture:
        for number in range(23):
            fixture.world.platform.say(fixture.world.general, "ana", f"@ada {number}")
            await fixture.world.platform.settled()
        await gate.reached.wait()
        gate.open.set()
        said = await fixture.said()
        failed = ("bot-ada", Reactions().failed)
        signs = [each for each in fixture.world.platform.reactions.values() if failed in each]
    assert len(said) + len(signs) == 23
    assert len([text for text in said if "busy" in text]) == 1
    assert [strip_date(join_text(r.messages[-1].parts)) for r in model.requests][:3] == ["Ana: 0", "Ana: 1", "Ana: 2"]


@pytest.mark.proves("C18", "TW17")
async def test_typing_is_shown_while_the_turn_runs_and_ends_with_it() -> None:
    gate = ReplyGate()
    async with open_platform(
        model=ScriptedModel(Unavailable("down"), ScriptedReply("It is a long way.", halfway=gate))
    ) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada one")
        await fixture.settled()
        await fixture.until(lambda: not fixture.ada.typing_in)
        assert fixture.ada.typed
        fixture.world.platform.say(fixture.world.general, "ana", "@ada two")
        await gate.reached.wait()
        await anyio.wait_all_tasks_blocked()
        assert fixture.ada.typing_in
        gate.open.set()
        await fixture.settled()
        await fixture.until(lambda: not fixture.ada.typing_in)


@pytest.mark.proves("S35-signals")
async def test_configured_reactions_show_that_a_message_was_seen_and_done() -> None:
    account_policy = AccountPolicy(style=ReplyStyle(reactions=Reactions(seen="👀", done="👍")))
    gate = ReplyGate()
    async with open_platform(
        model=ScriptedModel(ScriptedReply("ok", before=gate)), account_policy=account_policy
    ) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada one")
        await gate.reached.wait()
        assert fixture.world.platform.reactions[asked.id] == [("bot-ada", "👀")]
        gate.open.set()
        await fixture.settled()
        await fixture.until(lambda: fixture.world.platform.reactions[asked.id] == [("bot-ada", "👍")])


@pytest.mark.proves("SW8-errors")
@pytest.mark.parametrize(
    ("boundary", "text", "error", "told"),
    [
        (
            (TurnStarter, "start"),
            "@ada hello",
            RuntimeError("no row in /srv/secret.db"),
            "Something went wrong inside.",
        ),
        ((InteractionHandler, "run_command"), "@ada /help", RuntimeError("secret"), "Something went wrong inside."),
        (
            (CommandDispatcher, "_build_context"),
            "@ada /help",
            Unavailable("The database is busy.", why="locked (/srv/secret.db)"),
            "The database is busy.",
        ),
        (
            (CommandDispatcher, "_build_context"),
            "@ada /help",
            NeedsAttention("The disk is full.", fix="Make room on /srv/secret."),
            "The disk is full.",
        ),
    ],
    ids=str,
)
async def test_a_fault_outside_of_a_turn_is_told_without_internals_too(
    boundary: tuple[type, str], text: str, error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(*boundary, fail)
    async with open_platform() as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", text)
        [said] = await fixture.said()
    assert said.startswith(f"{told} Reference: err_") and "secret" not in said


@pytest.mark.proves("C20", "L-config-error-message", "SW8-errors")
async def test_a_failure_is_told_without_internals_and_with_a_reference() -> None:
    def break_down(_: ModelRequest) -> ScriptedReply:
        raise RuntimeError("no row in /srv/secret.db")

    async with open_platform(model=ScriptedModel(otherwise=break_down)) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello")
        said = await fixture.said()
        assert "secret" not in said[0] and "Reference: turn_" in said[0]
    fault = Unavailable("The model does not answer.", why="connection refused at 10.0.0.7", code="provider_down")
    async with open_platform(model=ScriptedModel(otherwise=fault)) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada hello")
        said = await fixture.said()
        assert "10.0.0.7" not in said[0] and "Reference: turn_" in said[0]
        assert fixture.world.platform.reactions[asked.id] == [("bot-ada", Reactions().failed)]
    async with open_platform(
        model=ScriptedModel(otherwise=fault),
        account_policy=AccountPolicy(style=ReplyStyle(error_message="Ask Olga.", preview=False)),
    ) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada hello")
        assert (await fixture.said())[0].startswith("Ask Olga.")
    async with open_platform(
        model=ScriptedModel(otherwise=fault),
        account_policy=AccountPolicy(style=ReplyStyle(failure_text=False, preview=False)),
    ) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada hello")
        assert await fixture.said() == []
        assert fixture.world.platform.reactions[asked.id] == [("bot-ada", Reactions().failed)]
