"""The agents at `/admin/agents`: what each is made of, the prompt that it would send, and its persona files.

Owners change an agent's entry in the configuration, edit its persona files, and add agents. Admins look.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.agent import Agent, ResponseStyle
from denizen.domain.conversation import own_place
from denizen.domain.errors import DenizenError
from denizen.domain.ids import fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal, RoleName
from denizen.domain.prompt import count_tool_tokens, estimate_tokens
from denizen.domain.record import record
from denizen.domain.turn import Sender, TurnRequest
from denizen.engine.inspection.queries import Queries, ToolInfo
from denizen.ports.configuration import ConfigurationEdit, ConfigurationFiles, NewAgent, PersonaText
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.config_sections import address
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.setting_fields import join_path
from denizen_sdk.errors import ProblemDetails

AGENTS = "/admin/agents"
QUESTION = "What can you do here?"
FIRST_FILE = "IDENTITY.md"
LIMITS: Mapping[str, str] = {
    "max_steps": "Steps of a turn",
    "max_output_tokens": "Tokens of an answer",
    "max_history_tokens": "Tokens of history",
    "max_history_messages": "Messages of history",
    "max_tools": "Tools in a prompt",
    "turn_timeout_s": "Seconds of a turn",
}
MAX_DIGITS = 9
MAX_QUESTION_CHARS = 2000
_WRITTEN_TEXTS = ("description", "style.extra_instructions")
_NOTICES = {
    "added": "The agent was added, and answers now.",
    "changed": "The agent was changed. It holds from the next question on.",
    "removed": "The agent was removed.",
    "saved": "The file was saved, and stands in the prompt from the next question on.",
}


@record(kw_only=True)
class AgentRow:
    """One agent in the list, with the tokens of its persona and context."""

    agent: Agent
    is_default: bool
    model_name: str
    persona_tokens: int


@record(kw_only=True)
class AgentsPage:
    """The context of `agents.html`."""

    frame: Frame
    rows: Sequence[AgentRow]
    may_edit: bool
    notice: str = ""


@record
class AgentForm:
    """The fields of a new agent as they were typed, and the models that it may have."""

    values: Mapping[str, str]
    models: Sequence[str]


@record(kw_only=True)
class AgentFormPage:
    """The context of `agent_new.html`."""

    frame: Frame
    form: AgentForm
    problem: ProblemDetails | None = None


@record(kw_only=True)
class PromptPart:
    """A part of a prompt with its size: a segment of the system prompt, or a message."""

    name: str
    stability: str
    tokens: int
    text: str


@record(kw_only=True)
class PromptPreview:
    """A request that a question would make. `tool_tokens` are of the tools that come with it."""

    model: str
    parts: Sequence[PromptPart]
    tools: Sequence[str]
    tool_tokens: int

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts) + self.tool_tokens


@record
class AgentLimit:
    """A bound of the agent's turns, by the name of its field."""

    field: str
    label: str
    value: str


@record(kw_only=True)
class AgentPage:
    """The context of `agent.html`. `files` are the Markdown files in the agent's folder, `edited` the one that is open,
    and `preview_problem` says why there is no preview. `form` is the address of all its settings.
    """

    frame: Frame
    row: AgentRow
    tools: Sequence[ToolInfo]
    limits: Sequence[AgentLimit]
    styles: Sequence[str]
    values: Mapping[str, str]
    models: Sequence[str]
    files: Sequence[PersonaText]
    edited: PersonaText | None
    may_edit: bool
    question: str
    previews: Sequence[PromptPreview]
    preview_problem: ProblemDetails | None
    form: str
    notice: str = ""
    problem: ProblemDetails | None = None


class AgentPages:
    """The routes of the agents. Without `files` they are only looked at."""

    def __init__(self, deps: WebDependencies, files: ConfigurationFiles | None) -> None:
        self._deps = deps
        self._files = files
        self._engine = deps.engine

    @property
    def routes(self) -> list[SitePageRoute]:
        one = f"{AGENTS}/{{agent}}"
        looking = [
            SitePageRoute("GET", AGENTS, self.list, Access.ADMIN),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
        ]
        changing = [
            SitePageRoute("GET", "/admin/add-agent", self.show_form, Access.OWNER),
            SitePageRoute("POST", "/admin/add-agent", self.add, Access.OWNER),
            SitePageRoute("POST", one, self.edit, Access.OWNER),
            SitePageRoute("POST", f"{one}/files", self.save_file, Access.OWNER),
        ]
        return [*looking, *(changing if self._files is not None else ())]

    async def list(self, request: Request) -> Response:
        page = AgentsPage(
            frame=build_frame(request, self._deps),
            rows=[self._describe(agent) for agent in self._engine.queries.list_agents()],
            may_edit=self._may_edit(request),
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
        )
        return render("admin/agents.html", page)

    async def show(self, request: Request) -> Response:
        return await self._show(request)

    async def show_form(self, request: Request) -> Response:
        return self._show_form(request, {})

    async def add(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            name = await add_agent(self._get_files(), get_principal(request), form)
        except DenizenError as error:
            return self._show_form(request, form, error)
        return lead_to(f"{AGENTS}/{name}", done="added")

    async def edit(self, request: Request) -> Response:
        """Writes what differs from the configuration in force; the rest of the entry, with its comments, stays."""
        form, files = await read_form(request), self._get_files()
        agent = self._engine.queries.get_agent(request.path_params["agent"])
        wanted, known = _read_settings(form), _read_settings(await self._list_values(agent))
        path = f'agents."{agent.name}"'
        changed = {f"{path}.{key}": value for key, value in wanted.items() if value != known.get(key)}
        try:
            if changed:
                await files.apply(get_principal(request), ConfigurationEdit(values=changed))
        except DenizenError as error:
            return await self._show(request, form, error)
        return lead_to(f"{AGENTS}/{agent.name}", done="changed")

    async def save_file(self, request: Request) -> Response:
        form, files = await read_form(request), self._get_files()
        agent, name = request.path_params["agent"], form.get("file", "").strip()
        text = "" if "remove" in form else _clean(form.get("text", ""))
        try:
            await files.put_persona(get_principal(request), agent, name, text)
        except DenizenError as error:
            return await self._show(request, None, error, PersonaText(name, text, is_used=False))
        return lead_to(f"{AGENTS}/{agent}", file=name if text else "", done="saved")

    async def _show(
        self,
        request: Request,
        typed: Mapping[str, str] | None = None,
        error: DenizenError | None = None,
        edited: PersonaText | None = None,
    ) -> Response:
        agent, asked = self._engine.queries.get_agent(request.path_params["agent"]), request.query_params
        may_edit, problem = self._may_edit(request), find_problem(error)
        files = await self._files.list_persona(agent.name) if self._files is not None else ()
        wanted = asked.get("file", "")
        if edited is None and "file" in asked:
            edited = next((each for each in files if each.name == wanted), PersonaText(wanted, "", is_used=False))
        question = asked.get("q", "").strip()[:MAX_QUESTION_CHARS] or QUESTION
        previews: Sequence[PromptPreview] = ()
        preview_problem = None
        try:
            previews = await self._preview(request, agent, question)
        except DenizenError as failure:
            preview_problem = find_problem(failure)
        page = AgentPage(
            frame=build_frame(request, self._deps),
            row=self._describe(agent),
            tools=await self._engine.queries.list_tools(agent.name),
            limits=[AgentLimit(f"limits.{key}", label, _show_limit(agent, key)) for key, label in LIMITS.items()],
            styles=[*ResponseStyle],
            values={**await self._list_values(agent), **(typed or {})},
            models=list_model_words(self._engine.queries),
            files=files,
            edited=edited if may_edit else None,
            may_edit=may_edit,
            question=question,
            previews=previews,
            preview_problem=preview_problem,
            form=address(join_path("agents", agent.name)),
            notice=_NOTICES.get(asked.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/agent.html", page, status=problem.status if problem else 200)

    def _show_form(self, request: Request, values: Mapping[str, str], error: DenizenError | None = None) -> Response:
        problem = find_problem(error)
        page = AgentFormPage(
            frame=build_frame(request, self._deps, path=AGENTS),
            form=fill_agent_form(self._engine.queries, values),
            problem=problem,
        )
        return render("admin/agent_new.html", page, status=problem.status if problem else 200)

    async def _preview(self, request: Request, agent: Agent, question: str) -> Sequence[PromptPreview]:
        """Returns the requests that a question of the viewer in a new session would make. None of them is sent."""
        if self._engine.plan_requests is None:
            return ()
        by = get_principal(request)
        turn = TurnRequest(
            agent=agent.name,
            place=own_place("web", by.key, fresh("preview")),
            sender=Sender(Author(by.id, by.name), by),
            parts=(TextPart(question),),
            platform_id=fresh("req"),
        )
        found: list[PromptPreview] = []
        for planned in await self._engine.plan_requests(turn):
            sent = planned.request
            segments = [
                PromptPart(
                    name=each.name,
                    stability=each.stability.name.lower(),
                    tokens=estimate_tokens(each.text),
                    text=each.text,
                )
                for each in sent.segments
            ]
            said = ["\n".join(part.text for part in each.parts if isinstance(part, TextPart)) for each in sent.messages]
            messages = [
                PromptPart(
                    name=f"{each.role}: {each.kind}",
                    stability=each.stability.name.lower(),
                    tokens=estimate_tokens(text),
                    text=text,
                )
                for each, text in zip(sent.messages, said, strict=True)
            ]
            found.append(
                PromptPreview(
                    model=planned.model,
                    parts=[*segments, *messages],
                    tools=[spec.name for spec in sent.tools],
                    tool_tokens=sum(map(count_tool_tokens, sent.tools)),
                )
            )
        return found

    async def _list_values(self, agent: Agent) -> Mapping[str, str]:
        """Returns what the form says of an agent. Its texts are as the file has them, with `${NAME}` for a variable."""
        in_force = _list_values(agent)
        values = dict(in_force)
        for section in ("agent_defaults", join_path("agents", agent.name)) if self._files is not None else ():
            written = (await self._get_files().describe(section)).value
            for key in _WRITTEN_TEXTS:
                if isinstance(text := _find_text(written, key), str):
                    values[key] = text if "${" in text else in_force[key]
        return values

    def _describe(self, agent: Agent) -> AgentRow:
        current, told = self._engine.runtime.current, agent.instructions
        texts = [text for _, text in (*told.persona, *told.context_files)]
        return AgentRow(
            agent=agent,
            is_default=agent.name == current.default_agent,
            model_name=current.models.get(agent.model).name,
            persona_tokens=sum(map(estimate_tokens, [*texts, told.core_memory])),
        )

    def _may_edit(self, request: Request) -> bool:
        return self._files is not None and RoleName.OWNER in get_principal(request).roles

    def _get_files(self) -> ConfigurationFiles:
        if self._files is None:
            raise TypeError("these routes are there with the files only")
        return self._files


async def add_agent(files: ConfigurationFiles, by: Principal, form: Mapping[str, str]) -> str:
    """Adds the agent that a form describes, with its persona, and returns its name. Raises what is wrong with it."""
    name = form.get("name", "").strip()
    section: JsonObject = {key: value for key, value in _read_settings(form).items() if value is not None}
    persona = _clean(form.get("persona", ""))
    await files.add_agent(by, NewAgent(name=name, section=section, files={FIRST_FILE: persona} if persona else {}))
    return name


def fill_agent_form(queries: Queries, typed: Mapping[str, str]) -> AgentForm:
    empty = {"name": "", "description": "", "model": "balanced", "tools": "*", "persona": ""}
    return AgentForm(values={**empty, **typed}, models=list_model_words(queries))


def list_model_words(queries: Queries) -> Sequence[str]:
    """Returns the words that an agent may have for its model."""
    known = queries.list_models()
    aliases = [alias for info in known for alias in info.aliases]
    return ["auto", *dict.fromkeys([*aliases, *(info.name for info in known)])]


def _find_text(section: Json, key: str) -> Json:
    for part in key.split("."):
        section = section.get(part) if isinstance(section, Mapping) else None
    return section


def _list_values(agent: Agent) -> Mapping[str, str]:
    """Returns what the form says of an agent as it is configured."""
    style = agent.instructions.style
    return {
        "description": agent.description,
        "model": agent.model_word,
        "tools": "\n".join(agent.tool_access.tools),
        "style.response": style.response,
        "style.language": style.language,
        "style.extra_instructions": style.extra_instructions,
        **{f"limits.{key}": _show_limit(agent, key) for key in LIMITS},
    }


def _show_limit(agent: Agent, key: str) -> str:
    return f"{getattr(agent.limits, key):g}" if key == "turn_timeout_s" else str(getattr(agent.limits, key))


def _read_settings(form: Mapping[str, str]) -> Mapping[str, Json]:
    """Returns the keys of the entry that the form has; None for what is empty, which is as all agents have it. What is
    no number is left to the check of the configuration, which names the key.
    """
    tools: list[Json] = [word for line in form.get("tools", "").splitlines() for word in line.replace(",", " ").split()]
    found: dict[str, Json] = {
        "description": form.get("description", "").strip() or None,
        "model": form.get("model", "").strip() or None,
        "tools": tools or None,
    }
    for key in ("style.response", "style.language", "style.extra_instructions"):
        if key in form:
            found[key] = form[key].replace("\r\n", "\n").strip()
    for key in (f"limits.{name}" for name in LIMITS):
        if key in form:
            typed = form[key].strip()
            found[key] = int(typed) if typed.isascii() and typed.isdecimal() and len(typed) <= MAX_DIGITS else typed
    return found


def _clean(text: str) -> str:
    """Returns a text of a form with the line ends of the files, and one at its end."""
    text = text.replace("\r\n", "\n").strip()
    return f"{text}\n" if text else ""
