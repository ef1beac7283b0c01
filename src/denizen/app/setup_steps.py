"""The steps of set-up about a model and about Discord: what is asked for, how it is checked, and what a key means.

`denizen setup` and the wizard in the browser (`app/setup_wizard.py`) ask for the same answers in their own ways. Each
is checked here, and nothing is written (`app/settings/setup.py` does that).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from denizen.adapters.discord.client.settings import DiscordAccountSettings, DiscordEndpoints
from denizen.adapters.models.failures import KEY_REFUSED, UNREACHABLE
from denizen.adapters.models.providers import PROVIDERS, ProviderSpec
from denizen.app.home.secrets import SECRETS_FILE, load_secrets
from denizen.app.settings.checks import DEFAULT_MODEL
from denizen.app.settings.effective import Settings
from denizen.app.settings.setup import SetupAnswers
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.ports.setup import DiscordChecklist, TokenState

KINDS = ("embedded", *(kind for kind in PROVIDERS if kind != "embedded"))
"""The kinds of providers as people are asked for them, the simplest first."""
USUAL_ADDRESS = "http://127.0.0.1:11434/v1"

_REMEDIES = {KEY_REFUSED: "Correct the key.", UNREACHABLE: "Correct the address, or check the network."}
"""Remedies while the answers are at hand: no variable and no setting has to be named then."""

CheckAccount = Callable[[DiscordAccountSettings], Awaitable[DiscordChecklist]]


@record
class KnownKeys:
    """The keys that may be there already: in the environment of this process, and in `secrets.env` for all."""

    home: Path
    environment: Mapping[str, str]
    stored: Mapping[str, str]

    @property
    def file(self) -> Path:
        return self.home / SECRETS_FILE

    def find(self, variable: str) -> str:
        """Returns the value that counts; empty for none."""
        return self.environment.get(variable) or self.stored.get(variable) or ""

    def lack(self, answers: SetupAnswers) -> bool:
        """Whether the provider of the answers needs a key that is nowhere yet."""
        return bool(answers.variable) and not answers.api_key and not self.find(answers.variable)


def load_known_keys(home: Path, environment: Mapping[str, str]) -> KnownKeys:
    return KnownKeys(home, dict(environment), dict(load_secrets(home, {}).variables))


def asks_for_address(kind: str) -> bool:
    """Whether people have to say where the provider is, or may have it elsewhere than others."""
    return kind in ("openai-compatible", "ollama")


def check_provider(answers: SetupAnswers, keys: KnownKeys) -> None:
    """Raises InvalidInput while the provider cannot be asked anything."""
    if answers.kind == "openai-compatible" and not answers.base_url:
        raise InvalidInput(
            "Where is the server?",
            code="setup_incomplete",
            why="Every server of this kind has its own address.",
            fix=f"Write it in full, such as {USUAL_ADDRESS}.",
            field="base_url",
        )
    if keys.lack(answers):
        raise InvalidInput(
            f"The provider '{answers.provider}' needs a key.",
            code="setup_incomplete",
            why=f"{answers.variable} is set neither in the environment nor in {SECRETS_FILE}.",
            fix="Paste the key that the provider gave you.",
            field="api_key",
        )


async def list_models(answers: SetupAnswers, keys: KnownKeys) -> list[str]:
    """Returns the models that the provider lists. Raises as `list_served_models` does."""
    from denizen.adapters.models.listing import list_served_models

    key = answers.api_key or keys.find(answers.variable)
    spec = ProviderSpec(name=answers.provider, kind=answers.kind, base_url=answers.base_url, api_key=lambda: key)
    return await list_served_models(spec)


@contextmanager
def fixing_answers() -> Generator[None]:
    """Lets errors of a provider say what to do about the answers that caused them."""
    try:
        yield
    except DenizenError as error:
        error.fix = _REMEDIES.get(error.code, error.fix)
        raise


def plan_model_name(answers: SetupAnswers, settings: Settings) -> str:
    """Returns the model that has to answer for the answers to be good: the one that they name, or that of the default
    agent in the settings that they bring about.
    """
    if answers.name or answers.model:
        return f"{answers.provider}/{answers.model or DEFAULT_MODEL}"
    return settings.agents[settings.default_agent].model


def clean_token(typed: str) -> str:
    """Returns a token as it was pasted, without blanks around it or the word before it in headers. Raises InvalidInput
    for what cannot be one.
    """
    token = typed.strip().removeprefix("Bot ").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(
            "This is no token of a bot.",
            code="discord_token_invalid",
            why="A token is one line of letters, digits, dots, hyphens and underscores.",
            fix="Copy it from the developer portal: the application, Bot, Reset Token.",
            field="token",
        )
    return token


async def check_discord(
    token: str, agent: AgentName, endpoints: DiscordEndpoints, check: CheckAccount
) -> DiscordChecklist:
    """Returns what Discord says about a token: whether it is good, which intents its application has, and which
    permissions it lacks in which channel.
    """
    found = await check(DiscordAccountSettings(agent, token, endpoints))
    if found.token is not TokenState.REFUSED:
        return found
    fix = "Copy it anew: in the developer portal, the application, Bot, Reset Token. The old one ends with that."
    return replace(found, findings=[replace(each, fix=fix) for each in found.findings])
