"""What hangs on a question: pictures, texts, PDF, and what cannot be read."""

from __future__ import annotations

import codecs

import pytest

from denizen.adapters.discord.messages.attachments import decode_text
from denizen.adapters.discord.messages.conversion import to_incoming_message
from denizen.adapters.documents.pdf import read_pdf
from denizen.domain.message import FilePart, ImagePart, Part, TextPart
from denizen.testing.discord import SimAttachment, file
from tests.adapters.discord.client_fixture import ClientFixture, open_client
from tests.adapters.documents.pdf_files import encrypted_pdf, make_pdf

pytestmark = pytest.mark.anyio


async def ask(at: ClientFixture, *files: SimAttachment, text: str = "look") -> tuple[str, tuple[Part, ...]]:
    """What the model is told, and the parts that come with it."""
    heard = await at.say(at.ana, text, attachments=files)
    first, *rest = await to_incoming_message(heard, at.me, read_pdf).load_parts()
    assert isinstance(first, TextPart)
    return first.text, tuple(rest)


def get_url(at: ClientFixture, index: int = 0) -> str:
    return at.client.heard[-1].attachments[index].url


async def test_a_question_without_files_is_one_text():
    async with open_client() as at:
        assert await ask(at, text=f"{at.ada.mention} hello") == ("hello", ())


@pytest.mark.proves("C12")
async def test_a_text_file_comes_inline():
    async with open_client() as at:
        tide = file("tide.csv", "day;metres\n6;3\n", "text/csv; charset=utf-8")
        text, parts = await ask(at, tide)
        assert text == "look"
        assert parts == (FilePart("tide.csv", "text/csv", 15, "day;metres\n6;3\n", get_url(at)),)


async def test_code_is_text_whatever_its_type_says():
    async with open_client() as at:
        _, parts = await ask(
            at, file("Dockerfile", "FROM scratch\n", "application/octet-stream"), file("a.rs", "fn main")
        )
        assert [part.text for part in parts if isinstance(part, FilePart)] == ["FROM scratch\n", "fn main"]


@pytest.mark.proves("C12")
async def test_what_is_larger_than_256_kb_is_named_with_type_size_and_address():
    async with open_client() as at:
        text, parts = await ask(at, file("log.txt", "x" * (256 * 1024 + 1), "text/plain"))
        assert text == f"look\n[attached: log.txt (text/plain, 256 KB) {get_url(at)} - too large to be read]"
        assert parts == (FilePart("log.txt", "text/plain", 262_145, "", get_url(at)),)
        _, parts = await ask(at, file("log.txt", "x" * (256 * 1024), "text/plain"))
        assert isinstance(parts[0], FilePart) and len(parts[0].text) == 256 * 1024


async def test_binary_that_calls_itself_text_is_not_read():
    async with open_client() as at:
        text, parts = await ask(at, file("notes.txt", b"\x7fELF\0\1\2", "text/plain"))
        assert text.endswith(" - it is no text]")
        assert isinstance(parts[0], FilePart) and parts[0].text == ""


async def test_files_of_other_types_are_named_with_type_size_and_address():
    async with open_client() as at:
        text, parts = await ask(at, file("maps.zip", b"PK", "application/zip"))
        assert text == f"look\n[attached: maps.zip (application/zip, 2 bytes) {get_url(at)}]"
        assert parts == (FilePart("maps.zip", "application/zip", 2, "", get_url(at)),)


async def test_pictures_go_by_their_address():
    async with open_client() as at:
        text, parts = await ask(at, file("gull.png", b"\x89PNG", "image/png"), file("tide.webp", b"RIFF", "image/webp"))
        assert text == "look"
        assert parts == (ImagePart(get_url(at), "image/png"), ImagePart(get_url(at, 1), "image/webp"))
        assert not at.server.requests_to("GET", "/cdn/")


async def test_pictures_that_are_too_large_or_too_many_are_named_only():
    async with open_client() as at:
        huge = file("huge.png", b"\x89PNG" + b"\0" * 8 * 1024 * 1024, "image/png")
        text, parts = await ask(at, huge)
        assert parts == ()
        assert text.endswith(" - the picture is too large to be looked at]")

        small = [file(f"{number}.png", b"\x89PNG", "image/png") for number in range(10)]
        first = at.world.say(at.ben, at.general, "mine", attachments=small[:2])
        heard = await at.say(at.ana, "look", attachments=small, reply_to=first)
        told, *parts = await to_incoming_message(heard, at.me, read_pdf).load_parts()
        assert isinstance(told, TextPart)
        assert len([part for part in parts if isinstance(part, ImagePart)]) == 10
        assert told.text.count("only 10 pictures are looked at") == 2


async def test_a_pdf_is_read_as_text():
    async with open_client() as at:
        text, parts = await ask(at, file("tides.pdf", make_pdf(["High at six"]), "application/pdf"))
        assert text == "look"
        assert isinstance(parts[0], FilePart) and parts[0].text == "High at six"


@pytest.mark.parametrize(
    ("data", "why"), [(b"%PDF-1.7 broken", "it is damaged"), (encrypted_pdf("secret", "word"), "it is encrypted")]
)
async def test_a_pdf_that_cannot_be_read_is_a_note(data: bytes, why: str):
    async with open_client() as at:
        text, parts = await ask(at, file("tides.pdf", data, "application/pdf"))
        assert text.endswith(f"{get_url(at)} - {why}]")
        assert isinstance(parts[0], FilePart) and parts[0].text == ""


async def test_a_failed_download_is_a_note_and_the_others_are_read():
    async with open_client() as at:
        files = [file("gone.txt", "one"), file("here.txt", "two")]
        heard = await at.say(at.ana, "look", attachments=files)
        del at.server.store.files.by_id[heard.attachments[0].id]
        told, *parts = await to_incoming_message(heard, at.me, read_pdf).load_parts()
        assert isinstance(told, TextPart)
        assert told.text.endswith(f"{heard.attachments[0].url} - it could not be downloaded]")
        assert [part.text for part in parts if isinstance(part, FilePart)] == ["", "two"]


async def test_the_files_of_the_post_that_it_replies_to_are_read_too():
    async with open_client() as at:
        first = at.world.say(at.ben, at.general, attachments=[file("gull.png", b"\x89PNG", "image/png")])
        heard = await at.say(at.ana, f"{at.ada.mention} what is that?", reply_to=first)
        told, *parts = await to_incoming_message(heard, at.me, read_pdf).load_parts()
        assert told == TextPart('[in reply to Ben: "gull.png (image/png, 4 bytes)"]\nwhat is that?')
        assert [type(part) for part in parts] == [ImagePart]


async def test_the_files_of_a_forwarded_message_are_read():
    async with open_client() as at:
        first = at.world.say(at.ben, at.general, "tides", attachments=[file("tide.txt", "high")])
        heard = await at.say(at.ana, forward=first)
        _, *parts = await to_incoming_message(heard, at.me, read_pdf).load_parts()
        assert [part.text for part in parts if isinstance(part, FilePart)] == ["high"]


async def test_a_reply_that_came_without_its_original_fetches_it_once():
    async with open_client(max_messages=None) as at:
        first = at.world.say(at.ben, at.general, "The tide is high")
        heard = await at.say(at.ana, "true?", reply_to=first)
        assert heard.reference is not None
        heard.reference.resolved = None
        arrival = to_incoming_message(heard, at.me, read_pdf)
        assert arrival.question == "true?"
        at.server.requests.clear()
        assert await arrival.load_parts() == (TextPart('[in reply to Ben: "The tide is high"]\ntrue?'),)
        assert len(at.server.requests) == 1
        at.world.delete(first)
        assert await arrival.load_parts() == (TextPart("true?"),)


async def test_a_voice_message_is_a_file_that_nobody_hears():
    async with open_client() as at:
        voice = SimAttachment("voice-message.ogg", b"OggS", "audio/ogg", duration_s=3.0, waveform="AQI=")
        text, parts = await ask(at, voice, text="")
        assert text == "[voice message, 3 s, which cannot be heard]"
        assert parts == (FilePart("voice-message.ogg", "audio/ogg", 4, "", get_url(at)),)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("naïve".encode(), "naïve"),
        ("naïve".encode("latin-1"), "naïve"),
        (codecs.BOM_UTF8 + b"marked", "marked"),
        ("wide".encode("utf-16"), "wide"),
        (codecs.BOM_UTF16_BE + "big".encode("utf-16-be"), "big"),
        (b"", ""),
        (b"a\0b", None),
        (bytes(range(1, 32)) * 4, None),
    ],
)
def test_text_is_told_from_binary(data: bytes, text: str | None):
    assert decode_text(data) == text


async def test_many_long_files_are_shown_as_far_as_they_fit_together():
    async with open_client() as at:
        files = [file(f"{n}.txt", "x" * 250_000) for n in range(4)]
        text, parts = await ask(at, *files)
    assert [bool(part.text) for part in parts if isinstance(part, FilePart)] == [True, True, False, False]
    assert "[3.txt is not shown" in text
