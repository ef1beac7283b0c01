"""What people see of an agent besides its words: previews, files, sessions, edits, buttons, commands as text."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from denizen.domain.agent import Agent, ContextStrategy, HistorySettings, SessionScope, TimestampPolicy
from denizen.domain.attention import AccountPolicy
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.message import FilePart, ImagePart
from denizen.domain.room import RoomKind
from denizen.domain.tool import Tier, ToolCall, ToolResult, ToolSpec
from denizen.ports.channel import ButtonPress, CommandCall
from denizen.ports.model import Capabilities
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply, call
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import ADA, World, list_texts, open_platform
from tests.memory_platform import START
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n pixels").decode()
DATA_URI = f"data:image/png;base64,{PIXEL}"


@pytest.mark.proves("V12")
@pytest.mark.usefixtures("immediate_previews")
async def test_a_long_turn_shows_what_it_does_in_one_message_that_gives_way_to_the_answer() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply(calls=[call("look", q="tides")]), ScriptedReply("High at noon.", halfway=gate))
    async with open_platform(model=model, account_policy=AccountPolicy()) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada when is high tide?")
        await gate.reached.wait()
        await fixture.until(lambda: bool(fixture.ada.sent) and "High" in fixture.ada.sent[0].content.text)
        shown = fixture.ada.sent[0]
        assert "look" in shown.content.text and shown.content.text.endswith("…")
        gate.open.set()
        assert await fixture.said() == ["High at noon."]
        assert fixture.ada.sent[0].id == shown.id and len(fixture.ada.sent) == 2


@pytest.mark.proves("L6")
@pytest.mark.usefixtures("immediate_previews")
async def test_a_call_that_takes_long_is_told_in_a_message_that_is_gone_with_the_answer() -> None:
    told = anyio.Event()

    async def draw(asked: ToolCall, scope: CallScope) -> ToolResult:
        await told.wait()
        return ToolResult("drawn")

    model = ScriptedModel(ScriptedReply(calls=[call("look", q="fox")]), ScriptedReply("Here."))
    tools = ToolsetFixture(run=draw)
    async with open_platform(model=model, tools=tools, account_policy=AccountPolicy()) as fixture:
        gate = fixture.turns._services.gate
        assert gate._interim_after_s == 30
        gate._interim_after_s = 0
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw")
        await fixture.until(lambda: any("still at work" in sent.content.text for sent in fixture.ada.sent))
        told.set()
        assert await fixture.said() == ["Here."]


@pytest.mark.usefixtures("immediate_previews")
async def test_the_preview_of_a_stopped_turn_is_taken_away() -> None:
    gate = ReplyGate()
    async with open_platform(
        model=ScriptedModel(ScriptedReply("never", before=gate)), account_policy=AccountPolicy()
    ) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        await gate.reached.wait()
        await fixture.until(lambda: bool(fixture.ada.sent))
        fixture.world.platform.delete(asked.id)
        await fixture.settled()
        await fixture.until(lambda: all(sent.id not in fixture.world.platform.posts for sent in fixture.ada.sent))


@pytest.mark.proves("L9")
async def test_images_of_a_result_become_cards_with_attachments_and_links_one_message_for_each_further_image() -> None:
    marker = '🖼️SPRITE_RESULT🖼️{"spriteId": "s1"}'
    data: dict[str, Json] = {
        "images": [
            {"url": DATA_URI, "title": "A fox", "links": {"north": "https://cdn.example/n.png"}},
            {"url": "https://cdn.example/2.png"},
        ]
    }

    async def draw(asked: ToolCall, scope: CallScope) -> ToolResult:
        return ToolResult(f"drawn {marker}", data=data)

    model = ScriptedModel(ScriptedReply(calls=[call("look", q="fox")]), ScriptedReply(f"Here is your fox. {marker}"))
    async with open_platform(model=model, tools=ToolsetFixture(run=draw)) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        first, second = (sent.content for sent in await fixture.sent())
        async with fixture.store.work(write=False) as work:
            [turn] = await work.turns.list_turns()
    assert turn.result.reply == "Here is your fox."
    assert first.text == "Here is your fox." and first.embeds[0].title == "A fox"
    assert first.embeds[0].image.startswith("attachment://")
    assert first.embeds[0].fields == (("north", "[open](https://cdn.example/n.png)"),)
    assert second.embeds[0].image == "https://cdn.example/2.png"
    assert all("SPRITE_RESULT" not in str(message) for message in model.requests[1].messages)


@pytest.mark.proves("L9", "L7")
@pytest.mark.parametrize("can", [Capabilities(), Capabilities(native_tools=False)], ids=["by calls", "by plans"])
async def test_data_uris_reach_neither_model_nor_store_nor_text_but_people_as_files(can: Capabilities) -> None:
    asked_with: list[str] = []

    async def draw(asked: ToolCall, scope: CallScope) -> ToolResult:
        asked_with.append(str(asked.args["q"]))
        return ToolResult(f"done ![fox]({DATA_URI})")

    like = f"like {DATA_URI}"
    drawing = ScriptedReply(f"First a line: ![a line]({DATA_URI})", calls=[call("look", q=like)])
    if not can.native_tools:
        drawing = ScriptedReply(json.dumps({"tool": "look", "args": {"q": like}}))
    answer = ScriptedReply(f"Look: ![a fox]({DATA_URI})")
    model = ScriptedModel(
        drawing, *([] if can.native_tools else [ScriptedReply('{"tool": "none"}')]), otherwise=answer, capabilities=can
    )
    async with open_platform(model=model, tools=ToolsetFixture(run=draw)) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        sent = await fixture.sent()
        async with fixture.store.work(write=False) as work:
            turn = (await work.turns.list_turns())[0]
            stored = await work.messages.list_tail(turn.session_id, limit=10)
            calls = await work.turns.list_calls(turn.id)
    assert asked_with == [like], "the tool gets what the model wrote"
    assert len(model.requests) > 1 and PIXEL not in str([request.messages for request in model.requests])
    assert PIXEL not in str(stored) and PIXEL not in str(turn) and PIXEL not in str(calls)
    assert all("base64" not in s.content.text for s in sent)
    assert [len(s.content.embeds) for s in sent] == [1, 1]


@pytest.mark.proves("L7")
async def test_data_uris_that_people_paste_reach_neither_model_nor_store() -> None:
    world, model = World(), ScriptedModel(otherwise=ScriptedReply(f"Like ![this]({DATA_URI})?"))
    async with open_platform(world, model, agents=RECENT) as fixture:
        world.platform.say(world.general, "bob", f"mine is {DATA_URI}")
        attached = FilePart("page.html", "text/html", 9, f'<img src="{DATA_URI}" alt="hat">')
        asked = world.platform.say(world.general, "ana", f"@ada what is {DATA_URI}?", parts=(attached,))
        await fixture.settled()
        world.platform.edit(asked.id, asked.text)  # as for the preview of a link
        world.platform.say(world.general, "ana", "@ada and now?")
        await fixture.settled()
        async with fixture.store.work(write=False) as work:
            turn = (await work.turns.list_turns())[0]
            stored = await work.messages.list_tail(turn.session_id, limit=9)
            posts = await work.archive.list_posts("discord", world.general.id, limit=9)
    assert len(model.requests) == 2
    assert PIXEL not in str([request.messages for request in model.requests])
    assert PIXEL not in str(stored) and PIXEL not in str(posts) and PIXEL not in str(turn)
    assert "what is [image/png, 15 bytes]?" in str(model.requests[0].messages)
    assert "mine is [image/png, 15 bytes]" in str(model.requests[0].messages)


@pytest.mark.proves("L3")
async def test_before_a_plan_there_is_typing_the_message_is_stored_and_the_talk_and_all_tools_are_known() -> None:
    gate, world = ReplyGate(), World()
    small = Capabilities(native_tools=False, small=True)
    plan = ScriptedReply('{"tool": "none"}', before=gate)
    model = ScriptedModel(plan, ScriptedReply("I do."), capabilities=small)
    async with open_platform(world, model, agents={ADA: Agent(ADA)}) as fixture:
        dice = ToolsetFixture([ToolSpec("roll", "Rolls dice.", {"type": "object"}, tier=Tier.HARMLESS)])
        await fixture.runtime.swap(replace(fixture.runtime.current, toolsets=(fixture.tools, dice)))
        for n in range(12):
            world.platform.say(world.general, "bob", f"remark {n}.")
        world.platform.say(world.general, "ana", "@ada do you agree?")
        with anyio.fail_after(HANG_LIMIT_S):
            await gate.reached.wait()
        assert fixture.ada.typing_in
        async with fixture.store.work(write=False) as work:
            [turn] = await work.turns.list_turns()
            assert (await work.messages.get(turn.trigger_id)).text == "do you agree?"
        gate.open.set()
        assert await fixture.said() == ["I do."]
    planned = model.requests[0]
    assert planned.output_name == "plan"
    *_, talk, question = list_texts(planned)
    assert question == "Ana: do you agree?"
    told = [line for line in talk.rstrip("]").splitlines() if "remark" in line]
    assert told == [f"Bob: remark {n}." for n in range(2, 12)]
    offered = [line.split("(")[0] for line in planned.segments[0].text.splitlines() if line.startswith("- ")]
    assert offered == ["- look", "- write", "- roll"]


@pytest.mark.proves("L3")
async def test_the_model_reads_what_was_said_in_the_room_just_before() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Yes."))
    agents = {ADA: Agent(ADA, history=HistorySettings(recent_messages=10))}
    async with open_platform(model=model, agents=agents) as fixture:
        for n in range(12):
            fixture.world.platform.say(fixture.world.general, "bob", f"remark {n}")
        fixture.world.platform.say(fixture.world.general, "ana", "@ada do you agree?")
        await fixture.settled()
        fixture.world.platform.say(fixture.world.general, "ana", "@ada still?")
        await fixture.settled()
    first, second = list_texts(model.requests[0]), list_texts(model.requests[1])
    assert "Bob: remark 2" in first[-1] and "remark 11" in first[-1] and "remark 1\n" not in first[-1]
    assert first[-2] == "Ana: do you agree?"
    assert second[-2] == "Ana: still?" and "do you agree" not in second[-1] and "Yes." not in second[-1]


RECENT = {ADA: Agent(ADA, history=HistorySettings(recent_messages=10))}


async def test_what_was_asked_before_is_not_told_again_however_many_tools_were_used() -> None:
    rounds = [ScriptedReply(calls=[call("look", q=f"{n}")]) for n in range(5)]
    model = ScriptedModel(*(step for _ in range(3) for step in (*rounds, ScriptedReply("Yes."))))
    async with open_platform(model=model, agents=RECENT) as fixture:
        for number in range(3):
            fixture.world.platform.say(fixture.world.general, "ana", f"@ada question {number}")
            await fixture.settled()
    assert not any("just before" in text for text in list_texts(model.requests[-1]))
    assert str(model.requests[-1].messages).count("question 0") == 1


async def test_what_another_bot_asked_is_not_told_again() -> None:
    world, model = World(), ScriptedModel(otherwise=ScriptedReply("Yes."))
    world.platform.add_person("robo", "Robo", is_bot=True)
    async with open_platform(world, model, agents=RECENT) as fixture:
        for _ in range(2):
            world.platform.say(world.general, "robo", "@ada question")
            await fixture.settled()
    assert not any("just before" in text for text in list_texts(model.requests[-1]))


async def test_what_was_asked_and_then_edited_or_missed_is_not_told_again() -> None:
    world, model = World(), ScriptedModel(otherwise=ScriptedReply("Yes."))
    async with open_platform(world, model, agents=RECENT) as fixture:
        asked = world.platform.say(world.general, "ana", "@ada question one")
        await fixture.settled()
        world.platform.edit(asked.id, "@ada question two")
        await fixture.settled()
    for number in (3, 4):
        world.platform.write(world.general, "ana", f"@ada question {number}")
    world.clock.time += timedelta(days=2)
    async with open_platform(world, model, agents=RECENT) as fixture:
        await fixture.settled()
        world.platform.say(world.general, "ana", "@ada and now?")
        await fixture.settled()
    assert list_texts(model.requests[-1])[-1].endswith("Ana: and now?")


@pytest.mark.parametrize("command", ["@ada /model", "@ada /context", "@ada /new"])
async def test_commands_and_their_replies_are_no_talk_that_an_agent_reads(command: str) -> None:
    ben = AgentName("ben")
    agents = RECENT | {ben: Agent(ben, history=HistorySettings(context=ContextStrategy.TRANSCRIPT))}
    model = ScriptedModel(otherwise=ScriptedReply("Yes."))
    async with open_platform(model=model, agents=agents) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", command)
        await fixture.until(lambda: len(fixture.world.platform.posts) >= 2)
        await fixture.settled()
        for agent in agents:
            fixture.world.platform.say(fixture.world.general, "ana", f"@{agent} hello")
            await fixture.settled()
    first, second = (str(request.messages) for request in model.requests)
    assert command not in first and "ada" not in first
    assert command not in second and "ada: Yes." in second and second.count("ada:") == 1


async def test_a_new_session_is_not_told_what_was_said_before_it() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Yes."))
    async with open_platform(model=model, agents=RECENT) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada my cat is Tom")
        await fixture.settled()
        fixture.world.clock.time = START.replace(minute=10)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada /new")
        await fixture.until(lambda: len(fixture.ada.sent) == 2)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada who is my cat?")
        await fixture.settled()
    assert "Tom" not in str(model.requests[-1].messages)


async def test_what_was_deleted_is_not_among_what_was_said_before() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Yes."))
    async with open_platform(
        model=model, agents={ADA: Agent(ADA, history=HistorySettings(recent_messages=10))}
    ) as fixture:
        secret = fixture.world.platform.say(fixture.world.general, "bob", "my number is 555")
        fixture.world.platform.delete(secret.id)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada what did he say?")
        await fixture.settled()
    assert "555" not in str(model.requests[0].messages)


@pytest.mark.proves("C13", "C-config-timestamps")
async def test_a_time_mark_stands_after_a_gap_and_keeps_its_bytes() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Yes."))
    # Not the gap that is usual.
    agent = Agent(ADA, history=HistorySettings(recent_messages=0, timestamps=TimestampPolicy("America/New_York", 540)))
    async with open_platform(model=model, agents={ADA: agent}) as fixture:
        for minute in (0, 5, 14, 22):
            fixture.world.clock.time = START.replace(minute=minute)
            fixture.world.platform.say(fixture.world.general, "ana", f"@ada minute {minute}")
            await fixture.settled()
    said = [text for text in list_texts(model.requests[-1]) if "minute" in text]
    assert said == [
        "[2026-11-01 07:00 America/New_York]\nAna: minute 0",
        "Ana: minute 5",
        "[2026-11-01 07:14]\nAna: minute 14",
        "Ana: minute 22",
    ]
    assert list_texts(model.requests[0])[-1] == said[0]


@pytest.mark.proves("X-session-scope", "T34")
@pytest.mark.parametrize(
    ("scope", "knows"), [(SessionScope.THREAD, False), (SessionScope.CHANNEL, True), (SessionScope.USER, True)]
)
async def test_a_session_follows_its_scope(scope: SessionScope, knows: bool) -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Noted."))
    world = World()
    thread = world.platform.add_room("help", RoomKind.THREAD, parent=world.general)
    agents = {ADA: Agent(ADA, history=HistorySettings(recent_messages=0, session_scope=scope))}
    async with open_platform(world, model, agents=agents) as fixture:
        world.platform.say(world.general, "ana", "@ada my cat is Tom")
        await fixture.settled()
        world.platform.say(thread, "ana", "@ada who is my cat?")
        await fixture.settled()
        world.platform.say(thread, "bob", "@ada and mine?")
        await fixture.settled()
        fixture.ada.tickets.add("t1")
        asked = CommandCall("77", "ask", "", {"text": "?"}, thread, "ana", "Ana", frozenset(), START, ticket="t1")
        await fixture.listener.on_command(asked)
        await fixture.settled()
    assert ("Tom" in str(model.requests[1].messages)) is ("Tom" in str(model.requests[3].messages)) is knows
    assert ("Tom" in str(model.requests[2].messages)) is (scope is SessionScope.CHANNEL)


@pytest.mark.proves("T34", "X-session-scope")
async def test_those_who_talk_in_one_thread_share_its_session_unless_something_else_is_said() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Noted."))
    world = World()
    thread = world.platform.add_room("help", RoomKind.THREAD, parent=world.general)
    agents = {ADA: Agent(ADA, history=HistorySettings(recent_messages=0))}
    async with open_platform(world, model, agents=agents) as fixture:
        for room, person, text in ((thread, "ana", "my cat is Tom"), (thread, "bob", "?"), (world.general, "ana", "?")):
            world.platform.say(room, person, f"@ada {text}")
            await fixture.settled()
    assert ["Tom" in str(request.messages) for request in model.requests] == [True, True, False]


@pytest.mark.proves("T34", "X-session-scope")
async def test_a_session_of_a_user_goes_with_them_through_all_channels() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Noted."))
    world = World()
    lounge = world.platform.add_room("lounge")
    agents = {ADA: Agent(ADA, history=HistorySettings(recent_messages=0, session_scope=SessionScope.USER))}
    async with open_platform(world, model, agents=agents) as fixture:
        for room, person, text in ((world.general, "ana", "my cat is Tom"), (lounge, "ana", "?"), (lounge, "bob", "?")):
            world.platform.say(room, person, f"@ada {text}")
            await fixture.settled()
    assert ["Tom" in str(request.messages) for request in model.requests] == [True, True, False]


async def test_an_edit_soon_after_is_answered_anew_in_the_same_message() -> None:
    model = ScriptedModel(ScriptedReply("A fox."), ScriptedReply("A hare."), otherwise=ScriptedReply("x"))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await fixture.settled()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        assert await fixture.said() == ["A hare."]
        fixture.world.platform.say(fixture.world.general, "ana", "@ada thanks")
        await fixture.settled()
    assert "fox" not in str(model.requests[2].messages)
    assert len(fixture.ada.sent) == 2


async def test_an_edit_stops_the_turn_that_still_runs() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("A fox.", before=gate), ScriptedReply("A hare."))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await gate.reached.wait()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        assert await fixture.said() == ["A hare."]


async def test_a_deleted_question_is_not_answered() -> None:
    gate = ReplyGate()
    async with open_platform(model=ScriptedModel(ScriptedReply("never", before=gate))) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada hello?")
        await gate.reached.wait()
        fixture.world.platform.delete(asked.id)
        assert await fixture.said() == []


@pytest.mark.proves("T36", "C19")
async def test_commands_work_as_text_and_a_reset_is_confirmed_with_a_sign() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(
        model=model, agents={ADA: Agent(ADA, history=HistorySettings(recent_messages=10))}
    ) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada my cat is Tom")
        await fixture.settled()
        fixture.world.clock.time = START.replace(minute=10)
        reset = fixture.world.platform.say(fixture.world.general, "ana", "@ada /reset")
        await fixture.settled()
        await fixture.until(lambda: bool(fixture.world.platform.reactions.get(reset.id)))
        assert fixture.world.platform.reactions[reset.id] == [("bot-ada", "✅")]
        fixture.world.platform.say(fixture.world.general, "ana", "@ada /hlep")
        await fixture.until(lambda: len(fixture.ada.sent) == 2)
        assert "/help" in (await fixture.said())[-1]
    async with open_platform(
        fixture.world, model, agents={ADA: Agent(ADA, history=HistorySettings(recent_messages=10))}
    ) as again:
        again.world.platform.say(again.world.general, "ana", "@ada who is my cat?")
        await again.settled()
    assert "Tom" not in str(model.requests[-1].messages)


@pytest.mark.proves("T38")
async def test_after_a_compaction_the_model_reads_the_summary_in_place_of_what_was_said() -> None:
    model = ScriptedModel(*map(ScriptedReply, ("A fine dog.", "A good age.", "Ana has a dog, who is four.", "Four.")))
    async with open_platform(model=model) as fixture:
        for text in ("@ada my dog is Rex", "@ada he is four", "@ada /compact", "@ada how old is he?"):
            fixture.world.platform.say(fixture.world.general, "ana", text)
            await fixture.settled()
    summary, question, _ = list_texts(model.requests[-1])
    assert summary == "[Messages 1-4 of this conversation, summed up: Ana has a dog, who is four.]"
    assert question == "Ana: how old is he?"


@pytest.mark.proves("V15")
async def test_one_users_model_is_nobody_elses() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Hello."))
    async with open_platform(model=model) as fixture:
        async with fixture.store.work() as work:
            await work.user_settings.put("platform_user:discord:ana", "model", "quality", now=START)
        for person in ("ana", "bob"):
            fixture.world.platform.say(fixture.world.general, person, "@ada hello")
            await fixture.settled()
        async with fixture.store.work(write=False) as work:
            turns = {turn.principal.name: turn.options.get("model") for turn in await work.turns.list_turns()}
    assert turns == {"Ana": "quality", "Bob": None}


async def test_a_pressed_button_says_its_value_for_who_pressed_it() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Done."))
    async with open_platform(model=model) as fixture:
        press = ButtonPress("9", "1", "Yes, do it", fixture.world.general, "bob", "Bob", frozenset(), START)
        await fixture.listener.on_press(press)
        await fixture.listener.on_press(press)
        assert await fixture.said() == ["Done."]
    assert list_texts(model.requests[0])[-1] == "Bob: [pressed a button, which says:] Yes, do it"


@pytest.mark.proves("V-skill-components")
async def test_a_choice_says_under_which_message_it_was_made() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("Red it is."))
    async with open_platform(model=model) as fixture:
        press = ButtonPress(
            "9", "1", "Red", fixture.world.general, "bob", "Bob", frozenset(), START, about="Which colour?"
        )
        await fixture.listener.on_press(press)
        assert await fixture.said() == ["Red it is."]
    assert list_texts(model.requests[0])[-1] == 'Bob: [chose, under your message "Which colour?":] Red'


async def test_a_command_is_answered_with_its_ticket() -> None:
    async with open_platform() as fixture:
        fixture.ada.tickets.add("t1")
        call = CommandCall(
            "77", "ask", "", {"text": "hello?"}, fixture.world.general, "ana", "Ana", frozenset(), START, ticket="t1"
        )
        reply = await fixture.listener.on_command(call)
        assert reply.is_pending
        sent = await fixture.sent()
    assert [(s.content.text, s.ticket) for s in sent] == [("Hello.", "t1")]


async def test_only_the_first_message_of_a_long_answer_to_a_command_says_that_more_follow() -> None:
    model = ScriptedModel(ScriptedReply("\n\n".join(f"Piece {n}. " + "word " * 350 for n in range(3))))
    async with open_platform(model=model) as fixture:
        fixture.ada.tickets.add("t1")
        call = CommandCall(
            "77", "ask", "", {"text": "hello?"}, fixture.world.general, "ana", "Ana", frozenset(), START, ticket="t1"
        )
        await fixture.listener.on_command(call)
        assert [each.goes_on for each in await fixture.sent()] == [True, False, False]


async def test_a_channel_that_refuses_one_message_goes_on_with_the_next() -> None:
    from denizen.domain.errors import NotAllowed, Unavailable

    async with open_platform() as fixture:
        fixture.ada.fail("post", NotAllowed("no"), times=1)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada one")
        await fixture.settled()
        fixture.ada.fail("post", Unavailable("gone", retry_after_s=0.01), times=1, after=True)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada two")
        assert await fixture.said() == ["Hello."]


async def test_a_picture_whose_address_has_expired_is_not_given_to_the_model_again() -> None:
    model = ScriptedModel(otherwise=ScriptedReply("A fox."), capabilities=Capabilities(images=True))
    picture = ImagePart("https://cdn.example/fox.png", "image/png")
    async with open_platform(model=model) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada what is this?", parts=(picture,))
        await fixture.settled()
        fixture.world.platform.say(fixture.world.general, "ana", "@ada sure?")
        await fixture.settled()
        fixture.world.clock.time = START.replace(day=3)
        fixture.world.platform.say(fixture.world.general, "ana", "@ada and now?")
        await fixture.settled()
    assert ["fox.png" in str(request.messages) for request in model.requests] == [True, True, False]


@pytest.mark.proves("L9")
@pytest.mark.usefixtures("immediate_previews")
@pytest.mark.parametrize("cut", [" The end.", ""])
async def test_a_preview_shows_no_marker_and_no_data(cut: str) -> None:
    gate = ReplyGate()
    marker = '🖼️SPRITE_RESULT🖼️{"spriteId": "s1"}'
    model = ScriptedModel(ScriptedReply(f"Look: ![a fox]({DATA_URI}) {marker}{cut}", halfway=gate))
    async with open_platform(model=model, account_policy=AccountPolicy()) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await gate.reached.wait()
        await fixture.until(lambda: bool(fixture.ada.sent) and "Look" in fixture.ada.sent[0].content.text)
        shown = fixture.ada.sent[0].content.text
        gate.open.set()
        await fixture.settled()
    assert "SPRITE" not in shown and "base64" not in shown
