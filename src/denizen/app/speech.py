"""Speech as the configuration has it: the engines of the skill `voice`, and who is not written down."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from denizen.adapters.models.providers import PROVIDERS
from denizen.app.models import provider_spec
from denizen.app.settings import Settings
from denizen.app.settings.tools import ToolSection
from denizen.builtin_skills import load_builtin
from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput
from denizen.domain.installation import build_install_command
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.ports.speech import Speech, SpeechRecognizer, SpeechSynthesizer

if TYPE_CHECKING:
    from denizen.adapters.discord.voice.session import VoiceServices
    from denizen.adapters.speech import SpeechEndpoint

SKILL = "voice"
PLATFORM = "discord"
TIMEOUT_S = 60.0

_PACKAGES = ("av", "davey", "espeakng_loader", "nacl", "pocketsphinx")

_log = logging.getLogger("denizen.app")


def has_voice(settings: Settings) -> bool:
    """Whether accounts have a voice: the skill is on."""
    return settings.tools.get(SKILL, ToolSection()).enabled is True


def list_missing_packages() -> list[str]:
    """Returns the packages of the extra `voice` that are not installed."""
    return [name for name in _PACKAGES if importlib.util.find_spec(name) is None]


def build_speech(settings: Settings) -> Speech:
    """Builds the engines; nothing is loaded or asked yet. Raises InvalidInput for a provider without an address."""
    from denizen.adapters.speech import EspeakSynthesizer, PocketsphinxRecognizer, ServedRecognizer, ServedSynthesizer
    from denizen.adapters.speech.espeak import DEFAULT_VOICE
    from denizen.builtin_skills.voice import LOCAL_RECOGNIZER, LOCAL_SYNTHESIZER, VoiceSettings

    section = settings.tools.get(SKILL, ToolSection())
    options = load_builtin(SKILL).read_settings(section.options)
    if not isinstance(options, VoiceSettings):
        raise TypeError(f"the settings of the skill {SKILL} are {type(options).__name__}")
    synthesizer: SpeechSynthesizer
    recognizer: SpeechRecognizer
    if options.speak_with == LOCAL_SYNTHESIZER:
        synthesizer = EspeakSynthesizer(options.voice or DEFAULT_VOICE, options.words_per_minute)
    else:
        synthesizer = ServedSynthesizer(_find_endpoint(settings, "speak_with", options.speak_with), options.voice)
    if options.write_with == LOCAL_RECOGNIZER:
        recognizer = PocketsphinxRecognizer()
    else:
        recognizer = ServedRecognizer(_find_endpoint(settings, "write_with", options.write_with), options.language)
    return Speech(synthesizer, recognizer)


def _find_endpoint(settings: Settings, key: str, named: str) -> SpeechEndpoint:
    from denizen.adapters.speech import SpeechEndpoint

    name, _, model = named.partition("/")
    section = settings.models.providers.get(name)
    url = "" if section is None else section.base_url or PROVIDERS[section.kind].base_url
    if section is None or not url:
        raise InvalidInput(
            f"tools.{SKILL}.{key}: the provider '{name}' cannot be asked for speech.",
            code="config_invalid",
            why="No such provider is configured." if section is None else "It has no address.",
            fix="Name a provider below models.providers that has OpenAI's audio API, or leave the key out.",
        )
    spec = provider_spec(name, section, settings.secrets)
    return SpeechEndpoint(
        provider=name,
        url=url,
        model=model,
        api_key=lambda: spec.api_key() if spec.api_key is not None else None,
        headers=spec.headers,
        timeout_s=section.timeout_s or TIMEOUT_S,
    )


class SpeechEngines:
    """The engines of this process. They are built anew when the configuration is another one."""

    def __init__(self) -> None:
        self._digest = ""
        self._speech: Speech | None = None

    def get(self, settings: Settings) -> Speech:
        if self._speech is None or self._digest != settings.digest:
            self._speech, self._digest = build_speech(settings), settings.digest
        return self._speech


def build_voice_services(
    settings: Callable[[], Settings], engines: SpeechEngines, mirror: ArchiveMirror, clock: Clock
) -> VoiceServices | None:
    """Builds what accounts need for voice channels. None where the skill is off, or its packages are missing, which the
    log says. `settings` returns those in force.
    """
    if not has_voice(settings()):
        return None
    if missing := list_missing_packages():
        fix = f"Run `{build_install_command(SKILL)}`, and restart."
        _log.error("voice is off: %s not installed", ", ".join(missing), extra={"code": "voice_missing", "fix": fix})
        return None
    from denizen.adapters.discord.voice.session import VoiceServices

    async def is_opted_out(user_id: str, roles: frozenset[str], channel: str) -> bool:
        chosen = mirror.policy.opt_outs | await mirror.load_opt_outs(PLATFORM)
        return user_id in chosen.users or channel in chosen.channels or bool(roles & chosen.roles)

    return VoiceServices(
        clock=clock,
        open_speech=lambda: engines.get(settings()),
        is_opted_out=is_opted_out,
        find_forgotten=lambda user_id: mirror.find_forgotten(PLATFORM, user_id),
    )
