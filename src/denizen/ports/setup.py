"""The steps of set-up, for people who take them over the web: a model, an account on Discord, a source, an agent.

Each answer is checked against what it is about before anything is written, and what is written holds when the call
returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum, auto
from typing import Protocol

from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.errors import Conflict, DenizenError, InvalidInput, Unavailable
from denizen.domain.principal import Principal
from denizen.domain.record import record

DISCORD_STEPS: Sequence[str] = (
    "At https://discord.com/developers/applications make a New Application.",
    "Under Bot: Reset Token, and copy the token. It is shown only once.",
    "Under Bot, Privileged Gateway Intents: switch on Message Content Intent. Without it, it reads mentions only.",
    "Switch on Server Members Intent there, too. With it, the agent knows whom an @Name means.",
)
"""The work on Discord before there is a token."""


class SetupStep(StrEnum):
    """The steps, in their order."""

    MODEL = auto()
    DISCORD = auto()
    SOURCE = auto()
    AGENT = auto()


@record(kw_only=True)
class StepState:
    """A step with what there is of it now. One that was `left_out` is not asked for again."""

    step: SetupStep
    is_done: bool
    told: str
    left_out: bool = False

    @property
    def is_open(self) -> bool:
        return not self.is_done and not self.left_out


@record(kw_only=True)
class ProviderOption:
    """A kind of provider. `address` is its usual one, empty where `needs_address`. `configured` is the address that the
    configuration has, `key` tells the key that is known from others and is no key, `variable` is where it is looked
    for, and `model` the model in use.
    """

    kind: str
    label: str
    address: str = ""
    needs_address: bool = False
    configured: str = ""
    variable: str = ""
    key: str = ""
    model: str = ""
    is_in_use: bool = False


@record(kw_only=True)
class ModelAnswers:
    """The answers about a model. Without an `api_key` the one that is known is used."""

    kind: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    model: str = ""


@record(kw_only=True)
class ModelConnection:
    """A model that answered, and how long it took."""

    model: str
    duration_s: float


class TokenState(StrEnum):
    """Whether Discord takes a token."""

    GOOD = "good"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """Discord could not be asked."""


@record(kw_only=True)
class DiscordChecklist:
    """The answer of Discord about a token: findings in reading order, and the link that invites the bot."""

    token: TokenState
    findings: Sequence[Diagnosis]
    invite_url: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether an account with this token hears and says everything that it may."""
        return self.find_problem() is None

    def find_problem(self) -> DenizenError | None:
        """Returns why an account with this token would not work, or not wholly."""
        wrong = [each for each in self.findings if each.severity is Severity.ERROR]
        why = "\n".join(each.what for each in wrong)
        match self.token:
            case TokenState.REFUSED:
                fix = next((each.fix for each in wrong), "")
                return InvalidInput("Discord refuses this token.", code="discord_token_refused", why=why, fix=fix)
            case TokenState.UNKNOWN:
                return Unavailable(
                    "Discord could not be asked about this token.",
                    code="discord_unreachable",
                    why=why,
                    fix="Try again.",
                )
            case _ if wrong:
                fix = "Do what the list says, and check again. Or connect it all the same."
                return Conflict("The bot still lacks something.", code="discord_incomplete", fix=fix)
            case _:
                return None


@record(kw_only=True)
class DiscordConnection:
    """The checklist of a token. With `is_saved` the agent has an account with it."""

    checklist: DiscordChecklist
    is_saved: bool = False


class ServerSetup(Protocol):
    """One for a process."""

    async def list_steps(self) -> Sequence[StepState]: ...

    async def leave_out(self, step: SetupStep, *, is_left_out: bool) -> None: ...

    def list_providers(self) -> Sequence[ProviderOption]:
        """Returns the kinds of providers, the simplest first."""
        ...

    async def list_models(self, answers: ModelAnswers) -> Sequence[str]:
        """Asks the provider for its models. Raises InvalidInput for answers that lack something, NeedsAttention for a
        key that it refuses, Unavailable where there is no answer.
        """
        ...

    async def connect_model(self, by: Principal, answers: ModelAnswers) -> ModelConnection:
        """Has the model answer, and then writes provider and model, which the agents on the usual alias use from then
        on. Raises as `list_models`, and what the model raises; nothing is written then.
        """
        ...

    async def connect_discord(self, by: Principal, token: str = "", *, despite_gaps: bool = False) -> DiscordConnection:
        """Asks Discord about a token, or about that of the configuration, and writes an account of the default agent
        where it is complete; `despite_gaps` also where the token is good alone. Raises NotFound without a token,
        InvalidInput and Conflict for one that cannot be used here.
        """
        ...

    def find_restart_reason(self) -> str:
        """Returns what of the answers holds from the next start of the server only; empty for nothing."""
        ...

    def restart(self) -> None:
        """Begins the server anew. Raises Conflict where that is not possible."""
        ...
