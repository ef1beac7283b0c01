"""A question that is asked anew or taken back has one reply, or none, whenever that happens."""

from __future__ import annotations

import anyio
import pytest

from denizen.domain.attention import AccountPolicy
from denizen.domain.clock import SystemClock
from denizen.domain.delivery import MessageContent
from denizen.domain.turn import TurnStatus
from denizen.engine.intake.opening import end_unwanted
from denizen.engine.outbox.sending import post_matches
from denizen.testing.scripted_model import ReplyGate, ScriptedModel, ScriptedReply
from tests.engine.gated_channel import GatedChannel, PostGate
from tests.engine.platform_fixture import ADA, World, open_platform
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

LONG = "\n\n".join(f"Paragraph {n}. " + "word " * 300 for n in range(4))


@pytest.mark.proves("P1")
async def test_a_question_that_is_edited_twice_has_one_answer_to_its_last_form() -> None:
    gates = [ReplyGate(), ReplyGate(), ReplyGate()]
    answers = ["A fox.", "A hare.", "A deer."]
    model = ScriptedModel(*(ScriptedReply(text, before=gate) for text, gate in zip(answers, gates, strict=True)))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await gates[0].reached.wait()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        await gates[1].reached.wait()
        fixture.world.platform.edit(asked.id, "@ada draw a deer")
        await gates[2].reached.wait()
        for gate in gates:
            gate.open.set()
        assert await fixture.said() == ["A deer."]


@pytest.mark.proves("P1")
async def test_answers_to_two_edits_take_the_place_of_one_another() -> None:
    model = ScriptedModel(ScriptedReply("A fox."), ScriptedReply("A hare."), ScriptedReply("A deer."))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await fixture.settled()
        for animal in ("hare", "deer"):
            fixture.world.platform.edit(asked.id, f"@ada draw a {animal}")
            await fixture.settled()
        assert await fixture.said() == ["A deer."]
        assert len(fixture.ada.sent) == 1


async def test_the_same_edit_heard_twice_is_answered_once() -> None:
    model = ScriptedModel(ScriptedReply("A fox."), ScriptedReply("A hare."))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await fixture.settled()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        await fixture.settled()
        for account in fixture.world.platform.accounts:
            account.hear_post(fixture.world.platform.posts[asked.id], is_edit=True)
        assert await fixture.said() == ["A hare."]
    assert len(model.requests) == 2


async def test_deleting_a_question_that_was_edited_stops_the_turn_of_its_new_form() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("A fox."), ScriptedReply("A hare.", before=gate))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await fixture.settled()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        await gate.reached.wait()
        fixture.world.platform.delete(asked.id)
        await fixture.world.platform.settled()
        gate.open.set()
        assert await fixture.said() == ["A fox."]


@pytest.mark.proves("P1")
async def test_an_edit_that_is_refused_leaves_the_question_its_answer() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("A fox.", before=gate), otherwise=ScriptedReply("x"))
    async with open_platform(model=model, per_hour=1) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await gate.reached.wait()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        await fixture.world.platform.settled()
        gate.open.set()
        assert "A fox." in await fixture.said()


@pytest.mark.usefixtures("immediate_previews")
async def test_an_edit_that_is_answered_with_a_preview_leaves_one_message() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("A fox."), ScriptedReply("A hare.", before=gate))
    async with open_platform(model=model, account_policy=AccountPolicy()) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        before = await fixture.said()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        await gate.reached.wait()
        await fixture.until(lambda: len(fixture.ada.sent) > len(before))
        gate.open.set()
        assert await fixture.said() == ["A hare."]


@pytest.mark.proves("P1")
async def test_pieces_that_were_withdrawn_while_the_first_was_on_its_way_are_not_sent() -> None:
    world = World()
    slow = GatedChannel(world.platform, ADA)
    slow.gated = PostGate(lambda content: content.text.startswith("Paragraph 0"))
    async with open_platform(world, ScriptedModel(ScriptedReply(LONG)), accounts={ADA: slow}) as fixture:
        asked = world.platform.say(world.general, "ana", "@ada tell me")
        await slow.gated.gate.reached.wait()
        world.platform.delete(asked.id)
        await world.platform.settled()
        slow.gated.gate.open.set()
        assert await fixture.said() == []


@pytest.mark.proves("P1")
async def test_a_turn_that_another_process_ended_owes_nothing() -> None:
    gate = ReplyGate()
    async with open_platform(
        model=ScriptedModel(ScriptedReply("A fox.", before=gate), otherwise=ScriptedReply("x"))
    ) as fixture:
        fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await gate.reached.wait()
        async with fixture.store.work() as work:
            (turn,) = await work.turns.list_turns()
            await end_unwanted(work, turn.id, now=SystemClock().now())
        gate.open.set()
        await fixture.until(lambda: not fixture.ada.typing_in)
        assert await fixture.said() == []


async def test_deleting_one_of_several_missed_questions_leaves_the_others_their_answer() -> None:
    world = World()
    async with open_platform(world) as fixture:
        world.platform.say(world.general, "bob", "nothing")
        await fixture.settled()
    asked = [world.platform.write(world.general, "ana", f"@ada question {n}") for n in range(3)]
    world.clock.time = world.clock.time.replace(day=3)
    gate = ReplyGate()
    async with open_platform(world, ScriptedModel(ScriptedReply("Sorry, all of you.", before=gate))) as fixture:
        await gate.reached.wait()
        world.platform.delete(asked[0].id)
        await world.platform.settled()
        gate.open.set()
        assert await fixture.said() == ["Sorry, all of you."]


def test_a_piece_is_recognised_by_what_people_read_of_it() -> None:
    sent = MessageContent("Ask <@12> or <@&13> in <#14> at <t:1700000000> <:wave:15>, please.")
    assert post_matches("Ask @Ana Maria or @the helpers in #quiet room at 2023-11-14 22:13 UTC :wave:, please.", sent)
    assert not post_matches("Ask @Ana Maria or @the helpers in #quiet room, thank you.", sent)
    assert post_matches("Hello  there", MessageContent("Hello there")) and not post_matches(
        "Hello there!", MessageContent("Hello there")
    )
    assert not post_matches("anything", MessageContent(""))


async def edit_while_pieces_are_sent(pieces: int, *, before: int) -> list[str]:
    """Asks anew while an answer is being posted: its piece number `before` is on its way."""
    world = World()
    slow = GatedChannel(world.platform, ADA)
    slow.gated = PostGate(lambda content: content.text.startswith(f"Paragraph {before}"))
    model = ScriptedModel(ScriptedReply(LONG if pieces > 1 else "Paragraph 0."), ScriptedReply("A hare."))
    async with open_platform(world, model, accounts={ADA: slow}) as fixture:
        asked = world.platform.say(world.general, "ana", "@ada tell me")
        await slow.gated.gate.reached.wait()
        world.platform.edit(asked.id, "@ada draw a hare")
        await world.platform.settled()
        with anyio.fail_after(HANG_LIMIT_S):
            while True:  # until the new answer is planned, so that it cannot know of the piece that is on its way
                async with fixture.store.work(write=False) as work:
                    if any(
                        turn.status is TurnStatus.DONE and turn.result.reply == "A hare."
                        for turn in await work.turns.list_turns()
                    ):
                        break
        slow.gated.gate.open.set()
        return await fixture.said()


@pytest.mark.proves("P1")
@pytest.mark.parametrize(("pieces", "before"), [(1, 0), (4, 0), (4, 2)])
async def test_an_edit_while_the_answer_is_being_posted_leaves_one_answer(pieces: int, before: int) -> None:
    assert await edit_while_pieces_are_sent(pieces, before=before) == ["A hare."]


@pytest.mark.proves("P1")
async def test_a_second_edit_before_the_first_is_answered_leaves_one_answer() -> None:
    gate = ReplyGate()
    model = ScriptedModel(ScriptedReply("A fox."), ScriptedReply("never", before=gate), ScriptedReply("A deer."))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada draw a fox")
        await fixture.settled()
        fixture.world.platform.edit(asked.id, "@ada draw a hare")
        await gate.reached.wait()
        fixture.world.platform.edit(asked.id, "@ada draw a deer")
        assert await fixture.said() == ["A deer."]


@pytest.mark.proves("P1")
async def test_an_answer_that_grows_again_after_it_shrank_stands_in_one_place() -> None:
    model = ScriptedModel(ScriptedReply(LONG), ScriptedReply("A hare."), ScriptedReply(LONG))
    async with open_platform(model=model) as fixture:
        asked = fixture.world.platform.say(fixture.world.general, "ana", "@ada tell me")
        at_first = await fixture.said()
        for text in ("@ada draw a hare", "@ada tell me at length"):
            fixture.world.platform.edit(asked.id, text)
            said = await fixture.said()
    assert said == at_first
