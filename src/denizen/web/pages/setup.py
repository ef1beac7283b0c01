"""Set-up at `/admin/setup`, for owners: a model, Discord, a source and an agent, each a step with a page of its own.

Every answer is checked before it is written. What was typed stays in the form; a key or a token, which no page shows,
stays on the server until it is stored. A step can be left out, and taken up again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.domain.user import User
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.ports.configuration import ConfigurationFiles
from denizen.ports.setup import (
    DISCORD_STEPS,
    DiscordChecklist,
    ModelAnswers,
    ProviderOption,
    ServerSetup,
    SetupStep,
    StepState,
    TokenState,
)
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import KnowledgeServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.agents import AgentForm, add_agent, fill_agent_form
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.sources import SourceForm, add_source, fill_source_form, read_kind
from denizen_sdk.errors import ProblemDetails

SETUP = "/admin/setup"
_NOTICES = {
    "model": "The model answered. Agents use it from now on.",
    "discord": "The account is connected to the agent.",
    "source": "The source was added, and is being read.",
    "agent": "The agent was added, and answers now.",
    "left": "The step is left out. You can take it up here at any time.",
    "restart": "The server restarts. Load this page again in a moment.",
    "forgotten": "The key that you typed is forgotten.",
}


@record(kw_only=True)
class SetupPage:
    """The context of `setup.html`. `restart` is what only holds from the next start on."""

    frame: Frame
    steps: Sequence[StepState]
    restart: str
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class SetupModelPage:
    """The context of `setup_model.html`. While the owner `is_choosing`, all providers are shown. `models` are those
    that the provider listed; with `has_typed_key` a key that was typed is kept on the server.
    """

    frame: Frame
    steps: Sequence[StepState]
    options: Sequence[ProviderOption]
    chosen: ProviderOption
    is_choosing: bool
    base_url: str
    model: str
    has_typed_key: bool
    models: Sequence[str] = ()
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class SetupDiscordPage:
    """The context of `setup_discord.html`. `checklist` is that of a good token; with `may_connect` the token was typed,
    and something is lacking.
    """

    frame: Frame
    steps: Sequence[StepState]
    guide: Sequence[str]
    is_connected: bool
    has_typed_token: bool
    accounts: Sequence[AccountState]
    restart: str
    checklist: DiscordChecklist | None = None
    may_connect: bool = False
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class SetupSourcePage:
    """The context of `setup_source.html`."""

    frame: Frame
    steps: Sequence[StepState]
    form: SourceForm
    notice: str = ""
    problem: ProblemDetails | None = None


@record(kw_only=True)
class SetupAgentPage:
    """The context of `setup_agent.html`. `known` are the agents that there are."""

    frame: Frame
    steps: Sequence[StepState]
    form: AgentForm
    known: Sequence[str]
    notice: str = ""
    problem: ProblemDetails | None = None


class SetupPages:
    """The routes of set-up. Keys and tokens that were typed and not stored yet are kept by person, in memory only."""

    def __init__(
        self, deps: WebDependencies, setup: ServerSetup, files: ConfigurationFiles, knowledge: KnowledgeServices
    ) -> None:
        self._deps = deps
        self._setup = setup
        self._files = files
        self._knowledge = knowledge
        self._models: dict[str, ModelAnswers] = {}
        self._tokens: dict[str, str] = {}

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", SETUP, self.show, Access.OWNER),
            SitePageRoute("GET", f"{SETUP}/model", self.show_model, Access.OWNER),
            SitePageRoute("POST", f"{SETUP}/model", self.connect_model, Access.OWNER),
            SitePageRoute("GET", f"{SETUP}/discord", self.show_discord, Access.OWNER),
            SitePageRoute("POST", f"{SETUP}/discord", self.connect_discord, Access.OWNER),
            SitePageRoute("GET", f"{SETUP}/source", self.show_source, Access.OWNER),
            SitePageRoute("POST", f"{SETUP}/source", self.add_source, Access.OWNER),
            SitePageRoute("GET", f"{SETUP}/agent", self.show_agent, Access.OWNER),
            SitePageRoute("POST", f"{SETUP}/agent", self.add_agent, Access.OWNER),
            SitePageRoute("POST", f"{SETUP}/left-out", self.leave_out, Access.OWNER),
            SitePageRoute("POST", f"{SETUP}/restart", self.restart, Access.OWNER),
        ]

    async def show(self, request: Request) -> Response:
        return await self._show(request)

    async def leave_out(self, request: Request) -> Response:
        form = await read_form(request)
        step = next((each for each in SetupStep if each.value == form.get("step")), None)
        if step is None:
            error = InvalidInput("There is no such step.", code="step_unknown", fix="Choose one of the list.")
            return await self._show(request, error)
        await self._setup.leave_out(step, is_left_out="again" not in form)
        self._forget(request, step)
        return lead_to(f"{SETUP}/{step}") if "again" in form else await self._lead_on(step, "left")

    async def restart(self, request: Request) -> Response:
        try:
            self._setup.restart()
        except DenizenError as error:
            return await self._show(request, error)
        return lead_to(SETUP, done="restart")

    async def _show(self, request: Request, error: DenizenError | None = None) -> Response:
        page = SetupPage(
            frame=self._frame(request),
            steps=await self._setup.list_steps(),
            restart=self._setup.find_restart_reason(),
            notice=_read_notice(request),
            problem=find_problem(error),
        )
        return _render("admin/setup.html", page, error)

    # --- a model -----------------------------------------------------------------------------------------------------

    async def show_model(self, request: Request) -> Response:
        return await self._show_model(request, request.query_params.get("kind", ""))

    async def connect_model(self, request: Request) -> Response:
        """Lists the models of the provider, or has one answer and takes it."""
        form, who = await read_form(request), get_principal(request)
        given = self._keep_model(request, form)
        if "forget" in form:
            self._models[who.key] = replace(given, api_key="")
            return lead_to(f"{SETUP}/model", kind=given.kind, done="forgotten")
        try:
            if "list" in form or (not given.model and given.kind != "embedded"):
                models = await self._setup.list_models(given)
                return await self._show_model(request, given.kind, models=models)
            await self._setup.connect_model(who, given)
        except DenizenError as error:
            return await self._show_model(request, given.kind, error)
        self._forget(request, SetupStep.MODEL)
        return await self._lead_on(SetupStep.MODEL)

    def _keep_model(self, request: Request, form: Mapping[str, str]) -> ModelAnswers:
        """Returns the answers of a form, with the key that was typed before where this one leaves it empty."""
        key, kind = get_principal(request).key, form.get("kind", "")
        before = self._models.get(key)
        typed = form.get("api_key", "").strip()
        given = ModelAnswers(
            kind=kind,
            base_url=form.get("base_url", "").strip(),
            api_key=typed or (before.api_key if before and before.kind == kind else ""),
            model=form.get("other", "").strip() or form.get("model", "").strip(),
        )
        self._models[key] = given
        return given

    async def _show_model(
        self, request: Request, kind: str, error: DenizenError | None = None, *, models: Sequence[str] = ()
    ) -> Response:
        options, draft = self._setup.list_providers(), self._models.get(get_principal(request).key)
        kind = kind or (draft.kind if draft else "")
        chosen = next((each for each in options if each.kind == kind), None)
        chosen = chosen or next((each for each in options if each.is_in_use), options[0])
        typed = draft if draft and draft.kind == chosen.kind else None
        page = SetupModelPage(
            frame=self._frame(request),
            steps=await self._setup.list_steps(),
            options=options,
            chosen=chosen,
            is_choosing=not kind,
            base_url=typed.base_url if typed else chosen.configured,
            model=typed.model if typed else chosen.model,
            has_typed_key=bool(typed and typed.api_key),
            models=models,
            notice=_read_notice(request),
            problem=find_problem(error),
        )
        return _render("admin/setup_model.html", page, error)

    # --- Discord -----------------------------------------------------------------------------------------------------

    async def show_discord(self, request: Request) -> Response:
        return await self._show_discord(request)

    async def connect_discord(self, request: Request) -> Response:
        """Checks a token, and connects it where nothing is lacking, or where that is wanted all the same."""
        form, who = await read_form(request), get_principal(request)
        typed = form.get("token", "").strip()
        token = typed or self._tokens.get(who.key, "")
        if token:
            self._tokens[who.key] = token
        try:
            done = await self._setup.connect_discord(who, token, despite_gaps="anyway" in form)
        except DenizenError as error:
            if isinstance(error, InvalidInput):
                self._tokens.pop(who.key, None)
            return await self._show_discord(request, error)
        if done.checklist.token is TokenState.REFUSED:
            self._tokens.pop(who.key, None)
        if not done.is_saved or not token:
            return await self._show_discord(request, done.checklist.find_problem(), done.checklist)
        self._forget(request, SetupStep.DISCORD)
        if self._setup.find_restart_reason():  # the list tells that the account logs in at the next start
            return lead_to(SETUP, done=SetupStep.DISCORD.value)
        return await self._lead_on(SetupStep.DISCORD)

    async def _show_discord(
        self, request: Request, error: DenizenError | None = None, checklist: DiscordChecklist | None = None
    ) -> Response:
        steps = await self._setup.list_steps()
        has_token = bool(self._tokens.get(get_principal(request).key))
        shown = checklist if checklist is not None and checklist.token is TokenState.GOOD else None
        page = SetupDiscordPage(
            frame=self._frame(request),
            steps=steps,
            guide=DISCORD_STEPS,
            is_connected=any(each.step is SetupStep.DISCORD and each.is_done for each in steps),
            has_typed_token=has_token,
            accounts=[each for each in self._deps.instance.list_accounts() if each.platform == "discord"],
            restart=self._setup.find_restart_reason(),
            checklist=shown,
            may_connect=has_token and shown is not None,
            notice=_read_notice(request),
            problem=find_problem(error),
        )
        return _render("admin/setup_discord.html", page, error)

    # --- a source and an agent ---------------------------------------------------------------------------------------

    async def show_source(self, request: Request) -> Response:
        return await self._show_source(request, {"kind": request.query_params.get("kind", "")})

    async def add_source(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            await add_source(request, self._knowledge, form)
        except DenizenError as error:
            return await self._show_source(request, form, error)
        return await self._lead_on(SetupStep.SOURCE)

    async def _show_source(
        self, request: Request, values: Mapping[str, str], error: DenizenError | None = None
    ) -> Response:
        page = SetupSourcePage(
            frame=self._frame(request),
            steps=await self._setup.list_steps(),
            form=fill_source_form(read_kind(values.get("kind", "")), values),
            notice=_read_notice(request),
            problem=find_problem(error),
        )
        return _render("admin/setup_source.html", page, error)

    async def show_agent(self, request: Request) -> Response:
        return await self._show_agent(request, {})

    async def add_agent(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            await add_agent(self._files, get_principal(request), form)
        except DenizenError as error:
            return await self._show_agent(request, form, error)
        return await self._lead_on(SetupStep.AGENT)

    async def _show_agent(
        self, request: Request, values: Mapping[str, str], error: DenizenError | None = None
    ) -> Response:
        queries = self._deps.engine.queries
        page = SetupAgentPage(
            frame=self._frame(request),
            steps=await self._setup.list_steps(),
            form=fill_agent_form(queries, values),
            known=[each.name for each in queries.list_agents()],
            notice=_read_notice(request),
            problem=find_problem(error),
        )
        return _render("admin/setup_agent.html", page, error)

    # --- the road ----------------------------------------------------------------------------------------------------

    def _frame(self, request: Request) -> Frame:
        return build_frame(request, self._deps, path=SETUP)

    def _forget(self, request: Request, step: SetupStep) -> None:
        """Drops what was typed at a step that is over."""
        drafts: Mapping[SetupStep, dict[str, ModelAnswers] | dict[str, str]]
        drafts = {SetupStep.MODEL: self._models, SetupStep.DISCORD: self._tokens}
        if step in drafts:
            drafts[step].pop(get_principal(request).key, None)

    async def _lead_on(self, step: SetupStep, done: str = "") -> Response:
        """Leads to the next step that is open, and from the last one to the list."""
        order = tuple(SetupStep)
        steps = [each.step for each in await self._setup.list_steps() if each.is_open]
        later = [each for each in steps if order.index(each) > order.index(step)]
        onward = next(iter(later), None)
        return lead_to(f"{SETUP}/{onward}" if onward else SETUP, done=done or step.value)


async def find_open_steps(deps: WebDependencies) -> Sequence[StepState]:
    """Returns the steps that nobody has taken or left out yet."""
    return [each for each in await deps.setup.list_steps() if each.is_open] if deps.setup is not None else []


async def find_first_page(deps: WebDependencies, user: User, path: str = "/") -> str:
    """Returns the page that a new account comes to: the first steps for an owner while some are open, else `path`."""
    is_setting_up = user.role is RoleName.OWNER and bool(await find_open_steps(deps))
    return SETUP if is_setting_up else path


def _read_notice(request: Request) -> str:
    return _NOTICES.get(request.query_params.get("done", ""), "") if request.method == "GET" else ""


def _render(template: str, page: object, error: DenizenError | None) -> Response:
    """Returns the page. Where an operator has to act, the answers are wrong and not the server: a refused key, say."""
    problem = find_problem(error)
    status = 400 if isinstance(error, NeedsAttention) else problem.status if problem else 200
    return render(template, page, status=status)
