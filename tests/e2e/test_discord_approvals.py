"""A call that waits for its asker on Discord, with real processes: killed, restarted, pressed, it runs once."""

from __future__ import annotations

import json

import pytest

from denizen.testing.discord import SimMessage, SimUser
from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.discord import DiscordDeployment
from tests.timing import HANG_LIMIT_S

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.proves("P2", "VW2", "T-approval-discord")]

NOTE = ModelCall("append_note", {"name": "shopping", "text": "- milk"})
ASKS = """\
gate:
  rules:
  - {tool: append_note, action: ask, reason: notes are kept for ever}
"""
SHORT = """\
gate:
  approvals: {timeout_s: 1}
  rules:
  - {tool: append_note, action: ask}
"""


def read_notes(deployment: DiscordDeployment) -> str:
    return "".join(file.read_text() for file in deployment.home.folder.glob("agents/ada/notes/rooms/*/shopping.md"))


async def read_press_answer(deployment: DiscordDeployment, who: SimUser, card: SimMessage, label: str) -> str:
    """Returns the answer to a press of that button, which only the one who pressed it sees."""
    used = await deployment.press(who, card, label)
    await deployment.until(lambda: used.response.messages)
    assert used.response.messages[0].origin.seen_by is who
    return used.response.messages[0].content


async def test_asked_killed_restarted_and_pressed_it_runs_once(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=ASKS)
    deployment.script(ModelAnswer(calls=[NOTE]))
    async with deployment.run() as first:
        question = deployment.ask(deployment.ana, "put milk on the list")
        card = await deployment.find_card()
        assert card.reference is not None
        assert card.reference.message_id == question.id
        assert '"- milk"' in card.content
        await first.kill()
    assert not read_notes(deployment)
    deployment.script("Noted.")
    async with deployment.run():
        await deployment.press(deployment.ana, card, "Approve")
        await deployment.until(lambda: "Noted." in deployment.said())
        await deployment.until(lambda: not card.body.components)
        assert "approved by" in card.content
        assert read_notes(deployment) == "- milk\n"
        assert len([text for text in deployment.said() if "asked by" in text]) == 1


async def test_a_stranger_is_told_no_in_private_and_the_second_press_what_was_decided(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(rest=ASKS)
    deployment.script(ModelAnswer(calls=[NOTE]), "Noted.")
    async with deployment.run():
        deployment.ask(deployment.ana, "put milk on the list")
        card = await deployment.find_card()
        assert "not yours to decide" in await read_press_answer(deployment, deployment.ben, card, "Approve")
        assert not read_notes(deployment)
        edit = deployment.discord.faults.hold("PATCH", times=1)  # the card keeps its buttons a while
        await deployment.press(deployment.ana, card, "Approve")
        await deployment.until(lambda: read_notes(deployment))
        assert "decided already: approved by" in await read_press_answer(
            deployment, deployment.ana, card, "For an hour here"
        )
        edit.release()
        await deployment.until(lambda: "Noted." in deployment.said())
        assert read_notes(deployment) == "- milk\n"


@pytest.mark.proves("T-approval-rejected")
async def test_a_no_asks_why_and_tells_the_model(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=ASKS)
    deployment.script(ModelAnswer(calls=[NOTE]), "As you wish.")
    async with deployment.run():
        deployment.ask(deployment.ana, "put milk on the list")
        card = await deployment.find_card()
        opened = await deployment.press(deployment.ana, card, "Deny")
        assert opened.response.modal is not None
        await deployment.world.submit_modal(deployment.ana, opened, {"why": "we have milk"}, wait_s=HANG_LIMIT_S)
        await deployment.until(lambda: "As you wish." in deployment.said())
        assert "we have milk" in str(deployment.requests[-1])
        assert "we have milk" in card.content
        assert not read_notes(deployment)


@pytest.mark.proves("T-approval-timeout", "VW2")
async def test_pressed_too_late_it_does_not_run(deployment: DiscordDeployment) -> None:
    deployment.configure(rest=SHORT)
    deployment.script(ModelAnswer(calls=[NOTE]), "Nobody said yes.")
    async with deployment.run() as first:
        deployment.ask(deployment.ana, "put milk on the list")
        card = await deployment.find_card()
        await first.kill()
    async with deployment.run():
        await deployment.until(lambda: "Nobody said yes." in deployment.said())
        await deployment.until(lambda: not card.body.components)
        assert "nobody approved it in time" in card.content
        assert not read_notes(deployment)


@pytest.mark.proves("T-config-discord")
async def test_what_a_member_wants_in_private_is_asked_of_the_owner_in_private(deployment: DiscordDeployment) -> None:
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest="gate: {tiers: {append_note: 3}}\n")
    deployment.script(ModelAnswer(calls=[NOTE]), "Noted.")
    world, ada = deployment.world, deployment.ada
    of_ben, of_ana = world.open_dm(deployment.ben, ada.user), world.open_dm(deployment.ana, ada.user)
    async with deployment.run():
        deployment.ask(deployment.ben, "put milk on the list", of_ben)
        await deployment.until(lambda: deployment.posts(of_ana))
        [card] = deployment.posts(of_ana)
        assert "asked by `Ben`" in card.content
        await deployment.press(deployment.ana, card, "Approve")
        await deployment.until(lambda: "Noted." in deployment.said(of_ben))
        await deployment.until(lambda: "approved by" in card.content)


@pytest.mark.proves("TW8")
async def test_the_owner_is_pinged_by_a_card_in_a_channel_and_only_the_owner_decides(
    deployment: DiscordDeployment,
) -> None:
    deployment.configure(conduct=[f'owners: ["{deployment.ana.id}"]'], rest="gate: {tiers: {append_note: 3}}\n")
    deployment.script(ModelAnswer(calls=[NOTE]), "Noted.")
    async with deployment.run():
        deployment.ask(deployment.ben, "put milk on the list")
        card = await deployment.find_card()
        assert card.content.startswith(deployment.ana.mention)
        assert card.mentioned.users == [deployment.ana]
        assert "not yours to decide" in await read_press_answer(deployment, deployment.ben, card, "Approve")
        assert not read_notes(deployment)
        await deployment.press(deployment.ana, card, "Approve")
        await deployment.until(lambda: "Noted." in deployment.said())


@pytest.mark.proves("V19", "VW2")
async def test_what_the_observer_escalates_alerts_the_owners_channel_and_runs_once_an_owner_allows_it(
    deployment: DiscordDeployment,
) -> None:
    owners = deployment.guild.add_channel("owners")
    observer = f"{{model: watcher, alert_channel: {owners.id}}}"
    deployment.configure(
        conduct=[f'owners: ["{deployment.ana.id}"]'],
        aliases={"watcher": "local/watcher"},
        rest=f"gate:\n  tiers: {{append_note: 2}}\n  observer: {observer}\n",
    )
    verdict = json.dumps({"decision": "escalate", "reason": "notes are for ever"})
    deployment.script(ModelAnswer(calls=[NOTE]), verdict, "Noted.")
    async with deployment.run():
        deployment.ask(deployment.ben, "put milk on the list")
        card = await deployment.find_card()
        await deployment.until(lambda: deployment.said(owners))
        assert deployment.requests[1].body["model"] == "watcher"
        [alert] = deployment.posts(owners)
        assert "notes are for ever" in alert.content and '"- milk"' in alert.content
        assert "not yours to decide" in await read_press_answer(deployment, deployment.ben, card, "Approve")
        assert not read_notes(deployment)
        await deployment.press(deployment.ana, alert, "Approve")
        await deployment.until(lambda: "Noted." in deployment.said())
        assert read_notes(deployment) == "- milk\n"


@pytest.mark.proves("V18", "V19", "V20")
@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        ('{"decision": "deny", "reason": "notes are for ever"}', "Denied: notes are for ever."),
        ("I approve.", "Denied: the observer could not review the call"),
    ],
)
async def test_what_the_observer_denies_or_has_no_clear_verdict_on_does_not_run_and_the_model_reads_why(
    verdict: str, reason: str, deployment: DiscordDeployment
) -> None:
    gate = "gate: {tiers: {append_note: 2}, observer: {model: watcher}}\n"
    deployment.configure(aliases={"watcher": "local/watcher"}, rest=gate)
    deployment.script(ModelAnswer(calls=[NOTE]), verdict, "I may not.")
    async with deployment.run():
        deployment.ask(deployment.ben, "put milk on the list")
        await deployment.until(deployment.said)
    assert deployment.said() == ["I may not."]
    assert not read_notes(deployment)
    assert reason in deployment.requests[-1].body["messages"][-1]["content"]
