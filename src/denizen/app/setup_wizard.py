"""The wizard of set-up on a running server (`denizen.ports.setup`): what there is, and answers that hold at once.

Whatever is answered is checked by `app/setup_steps.py`, as in `denizen setup`, and then written and loaded together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import anyio
from anyio import to_thread

from denizen.adapters.discord.check_process import check_apart
from denizen.adapters.models.providers import PROVIDERS, ProviderKind
from denizen.app.build import Denizen
from denizen.app.configuration import HomeConfiguration
from denizen.app.home.environment import read_environment
from denizen.app.home.secrets import SECRETS_FILE
from denizen.app.models import ChosenModel, build_catalog, verify_model
from denizen.app.settings import SetupAnswers, preview_setup
from denizen.app.settings.checks import BUILTIN as BUILTIN_PROVIDER
from denizen.app.settings.checks import DEFAULT_AGENT
from denizen.app.settings.discord import build_endpoints, build_logins, discord_variable
from denizen.app.settings.interpolation import as_written
from denizen.app.settings.models import ProviderSection
from denizen.app.settings.persona import BUILT_IN_PERSONA
from denizen.app.settings.setup import PERSONA_TEMPLATES
from denizen.app.setup_steps import (
    KINDS,
    CheckAccount,
    KnownKeys,
    asks_for_address,
    check_discord,
    check_provider,
    clean_token,
    fixing_answers,
    list_models,
    load_known_keys,
    plan_model_name,
)
from denizen.builtin_skills import BUILTIN
from denizen.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from denizen.domain.ids import AgentName
from denizen.domain.principal import Principal
from denizen.ports.setup import (
    DiscordConnection,
    ModelAnswers,
    ModelConnection,
    ProviderOption,
    SetupStep,
    StepState,
    TokenState,
)

ALIAS = "balanced"
"""The name under which set-up puts the model; agents use it unless they name another."""
ANSWER_DEADLINE_S = 180.0
_KEY = "setup"
"""Where the store keeps which steps were left out."""


class SetupWizard:
    """Implements `denizen.ports.setup.ServerSetup`. `check_account` asks Discord."""

    def __init__(
        self, denizen: Denizen, configuration: HomeConfiguration, check_account: CheckAccount = check_apart
    ) -> None:
        self._denizen = denizen
        self._home = denizen.home
        self._configuration = configuration
        self._check_account = check_account

    async def list_steps(self) -> Sequence[StepState]:
        store = self._denizen.services.store
        async with store.work(write=False) as work:
            left_out = await work.user_settings.get(_KEY)
        found = [self._model_state(), self._discord_state(), await self._source_state(), self._agent_state()]
        return [replace(each, left_out=not each.is_done and each.step.value in left_out) for each in found]

    async def leave_out(self, step: SetupStep, *, is_left_out: bool) -> None:
        services = self._denizen.services
        async with services.store.work() as work:
            await work.user_settings.put(_KEY, step.value, True if is_left_out else None, now=services.clock.now())

    # --- a model -----------------------------------------------------------------------------------------------------

    def list_providers(self) -> Sequence[ProviderOption]:
        settings, keys = self._denizen.settings, load_known_keys(self._home, read_environment())
        current, _, model = self._current_model().partition("/")
        options: list[ProviderOption] = []
        for kind in KINDS:
            facts, section = PROVIDERS[kind], self._find_provider(kind)
            variable = section.api_key.name if section and section.api_key else facts.key_variable
            name = BUILTIN_PROVIDER if kind == "embedded" else kind
            options.append(
                ProviderOption(
                    kind=kind,
                    label=facts.label,
                    address=facts.base_url,
                    needs_address=asks_for_address(kind),
                    configured=as_written(section.base_url) if section else "",
                    variable=variable,
                    key=settings.secrets.hint(variable) or ("***" if keys.find(variable) else ""),
                    model=model if name == current else "",
                    is_in_use=name == current,
                )
            )
        return options

    async def list_models(self, answers: ModelAnswers) -> Sequence[str]:
        given, keys = await self._read(answers)
        with fixing_answers():
            return await list_models(self._expand_address(given), keys)

    async def connect_model(self, by: Principal, answers: ModelAnswers) -> ModelConnection:
        given, _ = await self._read(answers)
        if given.kind != "embedded" and not given.model:
            raise InvalidInput(
                f"Which model of {given.provider} should answer?",
                code="setup_incomplete",
                fix="Choose one of the list, or write its name as the provider spells it.",
                field="model",
            )
        connection = await self._ask_model(given)
        await self._configuration.write_setup(by, given)
        return connection

    async def _ask_model(self, answers: SetupAnswers) -> ModelConnection:
        """Has a model answer whose settings are not in force yet. Weights that are loaded are not loaded twice."""
        preview = partial(preview_setup, self._home, answers, environment=read_environment(), known_tools=BUILTIN)
        settings = await to_thread.run_sync(preview)
        catalog = build_catalog(settings, ChosenModel(None, ""), self._denizen.generation_deps.embedded_runtimes)
        try:
            with fixing_answers(), anyio.fail_after(ANSWER_DEADLINE_S):
                answered = await verify_model(catalog, plan_model_name(answers, settings))
        except TimeoutError:
            raise Unavailable(
                "The model did not answer in time.",
                code="model_timeout",
                why=f"Nothing came within {ANSWER_DEADLINE_S:.0f} s.",
                fix="Try again later, or choose a smaller model.",
            ) from None
        finally:
            await catalog.aclose()
        return ModelConnection(model=answered.model, duration_s=answered.duration_s)

    async def _read(self, answers: ModelAnswers) -> tuple[SetupAnswers, KnownKeys]:
        """Returns the answers as set-up knows them, with the keys that are known."""
        keys = await to_thread.run_sync(load_known_keys, self._home, read_environment())
        if answers.kind not in KINDS:
            raise InvalidInput(
                "There is no such provider.", code="provider_unknown", fix=f"One of: {', '.join(KINDS)}."
            )
        kind: ProviderKind = answers.kind
        section = self._find_provider(kind)
        if kind == "embedded":
            is_new = not self._denizen.settings.document.tree
            return SetupAnswers(name="" if is_new else BUILTIN_PROVIDER, replaces=True), keys
        # The known key goes to the address that it was given for, and to no other.
        is_same_place = section is not None and as_written(section.base_url) == answers.base_url
        variable = section.api_key.name if is_same_place and section and section.api_key else ""
        given = SetupAnswers(
            kind=kind,
            model=answers.model,
            base_url=answers.base_url,
            api_key=answers.api_key,
            api_key_env=variable,
            alias=ALIAS,
            replaces=True,
        )
        check_provider(given, keys)
        _check_not_shadowed(given.variable, given.api_key, keys)
        return given, keys

    def _expand_address(self, answers: SetupAnswers) -> SetupAnswers:
        """Returns the answers with the address that is asked, where theirs is the written one of the provider."""
        section = self._find_provider(answers.kind)
        if section is None or as_written(section.base_url) != answers.base_url:
            return answers
        return replace(answers, base_url=section.base_url)

    def _find_provider(self, kind: str) -> ProviderSection | None:
        return self._denizen.settings.models.providers.get(BUILTIN_PROVIDER if kind == "embedded" else kind)

    def _current_model(self) -> str:
        current = self._denizen.runtime.current
        return current.models.get(current.agents[current.default_agent].model).name

    def _model_state(self) -> StepState:
        name = self._current_model()
        told = "the built-in small model" if name.startswith(f"{BUILTIN_PROVIDER}/") else name
        return StepState(step=SetupStep.MODEL, is_done=True, told=told)

    # --- Discord -----------------------------------------------------------------------------------------------------

    async def connect_discord(self, by: Principal, token: str = "", *, despite_gaps: bool = False) -> DiscordConnection:
        settings, typed = self._denizen.settings, clean_token(token) if token else ""
        if typed:
            await self._check_token_is_free(typed)
        asked = typed or self._find_token()
        if not asked:
            raise NotFound("There is no token yet.", code="discord_token_missing", fix="Paste the token of a bot.")
        endpoints = build_endpoints(settings.channels.discord, settings.secrets)
        checklist = await check_discord(asked, settings.default_agent, endpoints, self._check_account)
        is_saved = checklist.is_complete or (despite_gaps and checklist.token is TokenState.GOOD)
        if is_saved and typed:
            await self._configuration.write_setup(by, SetupAnswers(discord_token=typed, replaces=True))
        return DiscordConnection(checklist=checklist, is_saved=is_saved)

    async def _check_token_is_free(self, token: str) -> None:
        settings = self._denizen.settings
        if not settings.channels.discord.enabled:
            raise Conflict(
                "Discord is switched off.",
                code="channel_off",
                why="The configuration says channels.discord.enabled: false.",
                fix="Take that out of the configuration first.",
            )
        keys = await to_thread.run_sync(load_known_keys, self._home, read_environment())
        section = settings.channels.discord.accounts.get(settings.default_agent)
        reference = section.token if section else None
        _check_not_shadowed(reference.name if reference else discord_variable(settings.default_agent), token, keys)

    def _find_token(self) -> str:
        """Returns the token of the default agent's account, also while Discord is simulated."""
        settings = self._denizen.settings
        logins = build_logins(settings.channels.discord, settings.secrets)
        return next((each.token for each in logins if each.agent == settings.default_agent), "")

    def _discord_state(self) -> StepState:
        settings = self._denizen.settings
        agents = ", ".join(each.agent for each in build_logins(settings.channels.discord, settings.secrets))
        told = f"an account for {agents}" if agents else "no account"
        if self._denizen.simulation is not None and not agents:
            told += " but those on the simulated server"
        return StepState(step=SetupStep.DISCORD, is_done=bool(agents), told=told)

    # --- the rest ----------------------------------------------------------------------------------------------------

    async def _source_state(self) -> StepState:
        known = await self._denizen.knowledge.catalog.list_known()
        told = ", ".join(each.source.label or each.source.id for each in known[:3]) or "none"
        more = f" and {len(known) - 3} more" if len(known) > 3 else ""
        return StepState(step=SetupStep.SOURCE, is_done=bool(known), told=f"{told}{more}")

    def _agent_state(self) -> StepState:
        """The agent that comes with Denizen counts once somebody has given it a character."""
        agents = self._denizen.runtime.current.agents
        first = agents.get(AgentName(DEFAULT_AGENT))
        persona = first.instructions.persona if first is not None else ()
        changed = [name for name, text in persona if text.strip() != PERSONA_TEMPLATES.get(name, "").strip()]
        is_own = first is None or len(agents) > 1 or bool(set(changed) - {BUILT_IN_PERSONA})
        told = ", ".join(agents) if is_own else f"{DEFAULT_AGENT}, as it came"
        return StepState(step=SetupStep.AGENT, is_done=is_own, told=told)

    def find_restart_reason(self) -> str:
        if self._denizen.simulation is None or not self._discord_state().is_done:
            return ""
        return "Discord is simulated until the next start of the server; the account logs in then."

    def restart(self) -> None:
        if not self._denizen.restart.is_possible:
            raise Conflict("The server cannot restart itself.", code="restart_impossible", fix="Restart it by hand.")
        self._denizen.restart.wanted.set()


def _check_not_shadowed(variable: str, typed: str, keys: KnownKeys) -> None:
    """Raises Conflict for a secret that would be stored and never used: the environment of the server goes before."""
    there = keys.environment.get(variable)
    if typed and there and there != typed:
        raise Conflict(
            f"The environment of the server has another {variable}.",
            code="secret_shadowed",
            why=f"It goes before {SECRETS_FILE}, where what you typed would be kept.",
            fix=f"Set {variable} there to this value, or take it out, and restart the server.",
        )
