"""Speech that is made and recognized by real engines, here and behind OpenAI's audio API."""

from __future__ import annotations

import pytest

from denizen.adapters.speech import (
    EspeakSynthesizer,
    PocketsphinxRecognizer,
    ServedRecognizer,
    ServedSynthesizer,
    SpeechEndpoint,
)
from denizen.domain.errors import NeedsAttention, Unavailable
from denizen.ports.speech import Sound
from tests.adapters.speech.speech_server import SpeechServer, serve_speech

pytestmark = pytest.mark.anyio

SAID = "the meeting starts at nine o'clock tomorrow"


def endpoint(server: SpeechServer) -> SpeechEndpoint:
    return SpeechEndpoint("home", server.url, "whisper", lambda: "sesame")


async def test_what_is_spoken_here_is_recognized_here() -> None:
    sound = await EspeakSynthesizer().synthesize(SAID)
    assert 2 < sound.duration_s < 4
    assert await PocketsphinxRecognizer().transcribe(sound) == SAID


async def test_silence_has_no_words() -> None:
    recognizer = PocketsphinxRecognizer()
    assert await recognizer.transcribe(Sound(b"")) == ""
    assert await recognizer.transcribe(await EspeakSynthesizer().synthesize("")) == ""
    assert await recognizer.transcribe(await EspeakSynthesizer().synthesize(SAID)) == SAID, "it goes on afterwards"


async def test_a_voice_that_does_not_exist_is_named() -> None:
    with pytest.raises(NeedsAttention, match="no voice 'klingonese'"):
        await EspeakSynthesizer("klingonese").synthesize("hello")
    assert (await EspeakSynthesizer("de").synthesize("guten Tag")).duration_s > 0.5


async def test_a_server_speaks_and_writes_down() -> None:
    with serve_speech() as server:
        sound = await ServedSynthesizer(endpoint(server), "nova").synthesize(SAID)
        assert await ServedRecognizer(endpoint(server), "en").transcribe(sound) == SAID
    (spoken, written) = server.asked
    assert spoken == (
        "/v1/audio/speech",
        "Bearer sesame",
        {"model": "whisper", "input": SAID, "voice": "nova", "response_format": "wav"},
    )
    assert written[:2] == ("/v1/audio/transcriptions", "Bearer sesame")
    assert (written[2]["model"], written[2]["language"]) == ("whisper", "en")


async def test_a_server_that_refuses_says_why_and_one_that_fails_is_tried_later() -> None:
    with serve_speech() as server:
        server.status, server.body = 401, b"no such key"
        with pytest.raises(NeedsAttention, match="refused") as refused:
            await ServedRecognizer(endpoint(server)).transcribe(Sound(bytes(960)))
        assert refused.value.why == "401: no such key"
        server.status = 503
        with pytest.raises(Unavailable):
            await ServedSynthesizer(endpoint(server), "").synthesize("hello")
        server.status, server.body = 200, b"{}"
        with pytest.raises(Unavailable, match="home/whisper"):
            await ServedRecognizer(endpoint(server)).transcribe(Sound(bytes(960)))
        with pytest.raises(Unavailable) as empty:
            await ServedSynthesizer(endpoint(server), "").synthesize("hello")
        assert empty.value.why == "its answer holds no sound"
    with pytest.raises(Unavailable):
        await ServedSynthesizer(endpoint(server), "").synthesize("hello")
