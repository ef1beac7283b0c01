"""What people read of a message, and what the account is asked, from messages that discord.py received."""

from __future__ import annotations

import base64

import discord
import pytest

from denizen.adapters.discord.messages.attachments import load_parts
from denizen.adapters.discord.messages.wording import extract_question, is_conversation, render_text
from denizen.adapters.documents.pdf import read_pdf
from denizen.domain.message import TextPart
from denizen.testing.discord import SimAttachment, SimPollDraft, file
from tests.adapters.discord.client_fixture import open_client

pytestmark = pytest.mark.anyio


@pytest.mark.proves("C12")
async def test_mentions_read_as_names():
    async with open_client() as at:
        pilots = at.guild.add_role("Pilots", mentionable=True)
        heard = await at.say(
            at.ana, f"{at.ben.mention} and <@!{at.ana.id}>, ask {pilots.mention} in {at.general.mention}"
        )
        assert render_text(heard) == "@Ben and @Ana, ask @Pilots in #general"


async def test_those_who_left_and_channels_that_are_gone_are_unknown():
    async with open_client() as at:
        heard = await at.say(at.ana, "<@111111111111111111> <@&111111111111111112> <#111111111111111113>")
        assert render_text(heard) == "@unknown-user @unknown-role #unknown-channel"


async def test_a_private_channel_is_not_named_to_those_who_may_not_see_it():
    async with open_client() as at:
        crew = at.guild.add_role("Crew")
        at.guild.set_roles(at.ada.user, [crew])
        layoffs = at.guild.add_channel("layoffs", private_to=[crew])
        bridge = at.guild.add_channel("bridge", private_to=[crew])
        await at.settle()
        in_public = await at.say(at.ana, f"see {layoffs.mention}")
        among_the_crew = await at.say(at.ana, f"see {layoffs.mention}", bridge)
        assert render_text(in_public) == "see #unknown-channel"
        assert render_text(among_the_crew) == "see #layoffs"


async def test_a_private_thread_is_named_to_nobody_else():
    async with open_client() as at:
        thread = at.world.open_thread(at.ana, at.general, "plans", private=True)
        at.world.invite_to(at.ana, thread, at.ada.user)
        public = at.world.open_thread(at.ana, at.general, "lunch")
        heard = await at.say(at.ana, f"{thread.mention} {public.mention}")
        assert render_text(heard) == "#unknown-channel #lunch"


async def test_in_a_direct_talk_channels_are_named_that_its_user_sees():
    async with open_client() as at:
        closed = at.guild.add_channel("closed", private_to=[at.ada.user])
        await at.settle()
        talk = at.world.open_dm(at.ben, at.ada.user)
        heard = await at.say(at.ben, f"{at.general.mention} {closed.mention}", talk)
        assert render_text(heard) == "#general #unknown-channel"


async def test_stickers_polls_and_voice_messages_are_said_in_words():
    async with open_client() as at:
        gull = at.guild.add_sticker("Gull")
        voice = SimAttachment(
            "voice-message.ogg", b"OggS", "audio/ogg", duration_s=11.6, waveform=base64.b64encode(b"\1\2").decode()
        )
        assert render_text(await at.say(at.ana, stickers=[gull])) == "[sticker: Gull]"
        assert render_text(await at.say(at.ana, "Ahoy", stickers=[gull])) == "Ahoy\n[sticker: Gull]"
        poll = SimPollDraft("Lunch?", ["Fish", "Chips"])
        assert render_text(await at.say(at.ana, poll=poll)) == "[poll: Lunch? / 1. Fish / 2. Chips]"
        heard = await at.say(at.ana, attachments=[voice])
        assert render_text(heard) == "[voice message, 12 s, which cannot be heard]"


async def test_embeds_of_bots_are_read_and_bounded():
    async with open_client() as at:
        bell = at.world.add_application("Bell")
        at.guild.join(bell.user)
        card = {"title": "Tide", "description": "High at six", "fields": [{"name": "Height", "value": "3 m"}]}
        assert render_text(await at.say(bell.user, embeds=[card])) == "[embed: Tide\nHigh at six\nHeight: 3 m]"
        long = await at.say(bell.user, embeds=[{"title": "Log", "description": "x" * 4000}])
        assert len(render_text(long)) == 2000
        assert render_text(long).endswith("…")


async def test_the_preview_of_a_link_does_not_change_what_a_person_said():
    async with open_client() as at:
        sent = at.world.say(at.ana, at.general, "https://example.org")
        heard = await at.hear(sent)
        before = render_text(heard)
        heard._handle_embeds([{"type": "link", "title": "Example", "url": "https://example.org"}])
        assert render_text(heard) == before == "https://example.org"


async def test_a_forwarded_message_is_marked_as_such():
    async with open_client() as at:
        original = at.world.say(
            at.ben, at.general, "The tide is high", attachments=[file("tide.csv", "6;3\n", "text/csv")]
        )
        heard = await at.say(at.ana, forward=original)
        assert render_text(heard) == "[forwarded message: The tide is high tide.csv (text/csv, 4 bytes)]"


@pytest.mark.proves("C12")
async def test_a_message_without_anything_gets_a_placeholder():
    async with open_client() as at:
        heard = await at.say(at.ana, "   x")
        heard.content = "  "
        assert render_text(heard) == "[no text]"


@pytest.mark.proves("LW7", "L1")
async def test_every_form_of_the_own_mention_is_taken_out_wherever_it_stands():
    async with open_client() as at:
        role = next(each for each in at.guild.roles.values() if each.bot_id == at.ada.id)
        role.mentionable = True
        text = f"<@{at.ada.id}> hello <@!{at.ada.id}>, <@&{role.id}> do you know {at.ben.mention}? <@{at.ada.id}>"
        heard = await at.say(at.ana, text)
        assert extract_question(heard, at.me) == "hello, do you know @Ben?"


@pytest.mark.proves("L1")
async def test_a_mere_mention_asks_nothing():
    async with open_client() as at:
        heard = await at.say(at.ana, at.ada.mention)
        assert extract_question(heard, at.me) == ""
        with_file = await at.say(at.ana, at.ada.mention, attachments=[file("log.txt", "x")])
        assert extract_question(with_file, at.me) == "[no text]"


async def load_question(message: discord.Message, me: discord.ClientUser) -> str:
    """The question as the model reads it. What it replies to is no part of what is asked: `/why` stays a command."""
    asked = extract_question(message, me)
    assert "in reply" not in asked
    part = (await load_parts(message, me, asked, read_pdf))[0]
    assert isinstance(part, TextPart)
    return part.text


async def test_a_question_says_what_it_replies_to():
    async with open_client() as at:
        first = at.world.say(at.ben, at.general, "The  tide\nis high")
        heard = await at.say(at.ana, f"{at.ada.mention} true?", reply_to=first)
        assert await load_question(heard, at.me) == '[in reply to Ben: "The tide is high"]\ntrue?'
        long = at.world.say(at.ben, at.general, "x" * 1000)
        heard = await at.say(at.ana, "true?", reply_to=long)
        assert await load_question(heard, at.me) == f'[in reply to Ben: "{"x" * 299}…"]\ntrue?'


async def test_a_reply_to_the_account_itself_quotes_less():
    async with open_client() as at:
        mine = at.world.say(at.ada.user, at.general, "y" * 1000)
        heard = await at.say(at.ana, "why?", reply_to=mine)
        assert await load_question(heard, at.me) == f'[in reply to Ada: "{"y" * 99}…"]\nwhy?'


async def test_a_reply_to_what_was_deleted_says_so():
    async with open_client() as at:
        first = at.world.say(at.ben, at.general, "Oops")
        answer = at.world.say(at.ana, at.general, "what?", reply_to=first)
        await at.hear(answer)
        at.world.delete(first)
        fetched = await at.client.get_partial_messageable(at.general.id).fetch_message(answer.id)
        assert await load_question(fetched, at.me) == "[in reply to a message that was deleted]\nwhat?"


@pytest.mark.proves("C9")
async def test_what_discord_itself_writes_was_said_by_nobody():
    async with open_client() as at:
        said = at.world.say(at.ana, at.general, "Pin me")
        at.world.pin(at.ana, said)
        thread = at.world.open_thread(at.ana, said, "Details")
        at.world.open_thread(at.ana, at.general, "Bare")
        at.world.say(at.ana, thread, "Inside")
        await at.settle()
        spoken = [each.content for each in at.client.heard if is_conversation(each)]
        assert spoken == ["Pin me", "Inside", "so far"]
        assert len(at.client.heard) > len(spoken)
