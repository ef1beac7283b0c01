"""Our content as a Discord message."""

from __future__ import annotations

import pytest

from denizen.adapters.discord.messages.content import (
    ButtonAction,
    find_action,
    find_value,
    read_form,
    to_allowed_mentions,
    to_custom_id,
    to_edit,
    to_embed,
    to_file,
    to_message,
    to_view,
)
from denizen.domain.delivery import EmbedCard, MessageButton, MessageContent, OutgoingFile
from denizen.domain.errors import InvalidInput

pytestmark = pytest.mark.anyio


@pytest.mark.proves("CW8")
async def test_without_names_nobody_is_pinged() -> None:
    assert to_allowed_mentions(MessageContent("@everyone")).to_dict() == {"parse": [], "users": [], "roles": []}


async def test_a_nonce_is_enforced() -> None:
    payload = to_message(MessageContent("x"), nonce="n_1").payload
    assert payload is not None
    assert (payload["nonce"], payload["enforce_nonce"]) == ("n_1", True)
    assert "nonce" not in (to_message(MessageContent("x")).payload or {})


async def test_an_edit_takes_away_what_the_content_lacks() -> None:
    payload = to_edit(MessageContent("")).payload
    assert payload is not None
    assert (payload["content"], payload["embeds"], payload["attachments"], payload["components"]) == ("", [], [], [])


async def test_a_card_has_its_colour_and_black_is_one() -> None:
    assert to_embed(EmbedCard("x", colour=0x2F855A)).to_dict().get("color") == 0x2F855A
    assert to_embed(EmbedCard("x", colour=0)).to_dict().get("color") == 0
    assert "color" not in to_embed(EmbedCard("x")).to_dict()


async def test_texts_of_embeds_are_cut_to_discords_limits() -> None:
    embed = to_embed(EmbedCard("t" * 300, "x" * 5000, fields=(("", "v" * 2000), *((("n", ""),) * 30))))
    assert (len(embed.title or ""), len(embed.description or "")) == (256, 4096)
    assert len(embed.fields) == 25
    assert len(embed.fields[0].value or "") == 1024
    assert all(field.name and field.value for field in embed.fields)


@pytest.mark.parametrize(
    ("name", "media_type", "sent"),
    [
        ("map.png", "image/png", "map.png"),
        ("the map (1).png", "image/png", "the_map_1_.png"),
        ("map", "image/png", "map.png"),
        ("", "", "file"),
        ("../../etc/passwd", "", ".._.._etc_passwd"),
    ],
)
async def test_files_have_names_that_discord_keeps(name: str, media_type: str, sent: str) -> None:
    assert to_file(OutgoingFile(name, media_type, b"x")).filename == sent


async def test_too_much_is_refused_before_it_is_sent() -> None:
    for content in (
        MessageContent(embeds=(EmbedCard("x"),) * 11),
        MessageContent("x", buttons=(MessageButton("b", value="v"),) * 26),
    ):
        with pytest.raises(InvalidInput):
            to_message(content)


async def test_a_button_keeps_its_value_in_its_id() -> None:
    same = [MessageButton("One", value="a: b"), MessageButton("Two", value="a: b"), MessageButton("Word")]
    ids = [to_custom_id(position, button) for position, button in enumerate(same)]
    assert len(set(ids)) == 3
    assert [find_value(each, None) for each in ids] == ["a: b", "a: b", "Word"]
    assert find_value("something else", None) is None
    assert find_value("say#3", None) is None


async def test_a_value_that_is_too_long_is_said_by_the_label() -> None:
    assert to_custom_id(3, MessageButton("Short", value="v" * 100)) == "say#3"
    view = to_view([MessageButton("l" * 100, value="v" * 90)])
    row = view.to_components()[0]["components"][0]
    assert len(row["label"]) == 80
    assert row["custom_id"] == "say:0:" + "v" * 90


@pytest.mark.proves("T-approval-discord")
def test_what_a_button_does_stands_in_its_id_and_no_value_can_look_like_it() -> None:
    approve, deny = (
        MessageButton("Approve", action="once:apr_1"),
        MessageButton("Deny", action="deny:apr_1", asks_why=True),
    )
    assert find_action(to_custom_id(0, approve)) == ButtonAction("once:apr_1", opens_form=False)
    assert find_action(to_custom_id(2, deny)) == ButtonAction("deny:apr_1", opens_form=True)
    for value in ("do:once:apr_1", "x:do:once:apr_1", "why:deny:apr_1"):
        assert find_action(to_custom_id(0, MessageButton("Next", value=value))) is None
        assert find_value(to_custom_id(0, MessageButton("Next", value=value)), None) == value
    assert find_value(to_custom_id(0, approve), None) is None


def test_a_reason_is_read_from_a_form_of_either_kind() -> None:
    assert read_form([{"type": 18, "component": {"type": 4, "custom_id": "why", "value": "no"}}]) == "no"
    assert read_form([{"type": 1, "components": [{"type": 4, "custom_id": "why", "value": "no"}]}]) == "no"
    assert read_form([{"type": 10, "content": "x"}]) == ""
