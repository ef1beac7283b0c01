"""Two consoles over what agents read: the search at `/admin/search`, which explains each hit, and the read-only shell
at `/admin/shell`.

Commands of the shell are direct calls of the agent's tool: the gate decides about them and the audit log has them.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, InvalidInput, Unavailable, read_explanation
from denizen.domain.record import record
from denizen.engine.external.requests import DirectCall, DirectCalls
from denizen.engine.knowledge.index import ExplainedPassage
from denizen.ports.sandbox import MAX_COMMAND_CHARS, MAX_COMMANDS, ShellReply, ShellResult
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import KnowledgeServices, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.forms import find_problem
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

MAX_QUESTION_CHARS = 500
MAX_HITS = 15
EXAMPLES = ("ls -R docs | head -40", 'grep -rin "opening hours" . | head -20', "head -30 docs/README.md")


@record(kw_only=True)
class SearchPage:
    """The context of `search.html`. `embedding` tells how many passages can be found by meaning."""

    frame: Frame
    question: str
    source: str
    sources: Sequence[tuple[str, str]]
    hits: Sequence[ExplainedPassage]
    embedding: str
    problem: ProblemDetails | None = None


@record(kw_only=True)
class ShellPage:
    """The context of `shell.html`. `session` goes on from form to form."""

    frame: Frame
    commands: str
    agent: str
    agents: Sequence[tuple[str, str]]
    session: str
    results: Sequence[ShellResult]
    examples: Sequence[str]
    most: int
    problem: ProblemDetails | None = None


class SearchPages:
    """The route of the search console."""

    def __init__(self, deps: WebDependencies, knowledge: KnowledgeServices) -> None:
        self._deps = deps
        self._knowledge = knowledge

    @property
    def routes(self) -> list[SitePageRoute]:
        return [SitePageRoute("GET", "/admin/search", self.search, Access.ADMIN)]

    async def search(self, request: Request) -> Response:
        question = request.query_params.get("q", "").strip()
        source = request.query_params.get("source", "")
        hits: Sequence[ExplainedPassage] = ()
        problem = None
        known = await self._knowledge.catalog.list_known()
        try:
            if len(question) > MAX_QUESTION_CHARS:
                raise InvalidInput(
                    "The question is too long.", code="field_invalid", fix=f"At most {MAX_QUESTION_CHARS} characters."
                )
            if question:
                chosen = [source] if source else []
                guild = next((each.source.guild for each in known if each.source.id == source), "")
                search = self._knowledge.search
                hits = await search.explain(question, guild=guild, sources=chosen, limit=MAX_HITS)
        except DenizenError as error:
            problem = find_problem(error)
        progress = await self._knowledge.embedding()
        page = SearchPage(
            frame=build_frame(request, self._deps),
            question=question,
            source=source,
            sources=[
                ("", "every source for everybody"),
                *((each.source.id, each.source.label or each.source.id) for each in known),
            ],
            hits=hits,
            embedding=progress.describe() if progress is not None else "",
            problem=problem,
        )
        return render("admin/search.html", page, status=problem.status if problem else 200)


class ShellPages:
    """The routes of the shell console."""

    def __init__(self, deps: WebDependencies, calls: DirectCalls) -> None:
        self._deps = deps
        self._calls = calls

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", "/admin/shell", self.show, Access.ADMIN),
            SitePageRoute("POST", "/admin/shell", self.run, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        return self._render(request)

    async def run(self, request: Request) -> Response:
        """Runs the commands, one a line. What is refused is told beside the command; the others have run."""
        form = await read_form(request)
        text, agent = form.get("commands", ""), form.get("agent", "")
        commands = [line.strip() for line in text.splitlines() if line.strip()]
        try:
            if not 1 <= len(commands) <= MAX_COMMANDS or max(map(len, commands)) > MAX_COMMAND_CHARS:
                raise InvalidInput(
                    f"Write 1 to {MAX_COMMANDS} commands, one a line.",
                    code="field_invalid",
                    fix=f"Each has at most {MAX_COMMAND_CHARS} characters.",
                )
            done = await self._calls.make(
                DirectCall(
                    get_principal(request),
                    "bash_batch",
                    {"commands": [*commands]},
                    agent=agent,
                    shell_session=form.get("session", ""),
                )
            )
            if done.shell is None:
                told = read_explanation(done.result.text)
                raise Unavailable(told.message, code="shell_unavailable", why=told.why, fix=told.fix)
        except DenizenError as error:
            return self._render(request, text, agent, error=error)
        return self._render(request, text, agent, done.shell)

    def _render(
        self,
        request: Request,
        commands: str = "",
        agent: str = "",
        reply: ShellReply | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        problem, current = find_problem(error), self._deps.engine.runtime.current
        page = ShellPage(
            frame=build_frame(request, self._deps),
            commands=commands,
            agent=agent or current.default_agent,
            agents=[(name, name) for name in sorted(current.agents)],
            session=reply.session_id if reply else "",
            results=reply.results if reply else (),
            examples=EXAMPLES,
            most=MAX_COMMANDS,
            problem=problem,
        )
        return render("admin/shell.html", page, status=problem.status if problem else 200)
