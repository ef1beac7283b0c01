"""The engines of speech as the configuration has them, and who is never written down."""

from __future__ import annotations

import pytest

from denizen.adapters.speech import EspeakSynthesizer, PocketsphinxRecognizer
from denizen.app.build import OpenOptions, open_denizen
from denizen.app.speech import SpeechEngines, build_speech, build_voice_services
from denizen.domain.errors import InvalidInput
from tests.adapters.speech.speech_server import serve_speech
from tests.app.home_folder import Home
from tests.app.skill_loading.skill_folder_fixture import LAB

pytestmark = pytest.mark.anyio

SAID = "the meeting starts at nine o'clock tomorrow"
ON = "tools: {voice: {enabled: true}}\n"


async def test_without_more_said_it_speaks_and_hears_by_itself(home: Home) -> None:
    speech = build_speech(home.load(LAB + ON))
    assert isinstance(speech.synthesizer, EspeakSynthesizer)
    assert isinstance(speech.recognizer, PocketsphinxRecognizer)
    fast = build_speech(home.load(LAB + "tools: {voice: {enabled: true, voice: de, words_per_minute: 300}}\n"))
    slow = build_speech(home.load(LAB + "tools: {voice: {enabled: true, voice: de, words_per_minute: 100}}\n"))
    durations = [(await each.synthesizer.synthesize("guten Morgen")).duration_s for each in (fast, slow)]
    assert durations[0] < durations[1]


async def test_a_configured_provider_speaks_and_hears_with_its_key(home: Home) -> None:
    with serve_speech() as server:
        text = (
            f"models: {{aliases: {{balanced: lab/chat}}, providers: {{lab: {{kind: openai-compatible, base_url: "
            f"'{server.url}', api_key: \"${{LAB_KEY}}\"}}}}}}\n"
            "tools: {voice: {enabled: true, speak_with: lab/kokoro, write_with: lab/whisper, voice: nova, "
            "language: en}}\n"
        )
        engines, settings = SpeechEngines(), home.load(text, LAB_KEY="sesame")
        speech = engines.get(settings)
        assert engines.get(settings) is speech
        assert await speech.recognizer.transcribe(await speech.synthesizer.synthesize(SAID)) == SAID
    (spoken, heard) = server.asked
    assert (spoken[1], spoken[2]["model"], spoken[2]["voice"]) == ("Bearer sesame", "kokoro", "nova")
    assert (heard[1], heard[2]["model"], heard[2]["language"]) == ("Bearer sesame", "whisper", "en")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("speak_with: nobody/tts", "the provider 'nobody' cannot be asked for speech"),
        ("write_with: whisper", "'pocketsphinx' or PROVIDER/MODEL"),
        ("words_per_minute: 10", "from 80 to 450"),
    ],
)
async def test_settings_that_cannot_work_are_refused_at_the_start(home: Home, options: str, why: str) -> None:
    home.write(LAB + f"tools: {{voice: {{enabled: true, {options}}}}}\n")
    with pytest.raises(InvalidInput) as refused:
        async with open_denizen(home.path, OpenOptions(durable=False)):
            pass
    assert why in refused.value.explain()


async def test_accounts_have_a_voice_only_where_the_skill_is_on_and_hear_nobody_who_opted_out(home: Home) -> None:
    home.write(LAB + "archive: {opt_out_roles: ['5'], opt_out_channels: ['9']}\n" + ON)
    async with open_denizen(home.path, OpenOptions(durable=False)) as denizen:
        mirror, clock = denizen.platforms.mirror, denizen.services.clock
        voice = build_voice_services(lambda: denizen.settings, SpeechEngines(), mirror, clock)
        assert voice is not None
        await denizen.platforms.privacy.opt_out_user("discord", "1")
        assert await voice.is_opted_out("1", frozenset(), "3")
        assert await voice.is_opted_out("2", frozenset({"4", "5"}), "3")
        assert await voice.is_opted_out("2", frozenset(), "9")
        assert not await voice.is_opted_out("2", frozenset({"4"}), "3")
        off = home.load(LAB)
        assert build_voice_services(lambda: off, SpeechEngines(), mirror, clock) is None
