"""The overview at `/admin`: whether everything works, what runs, what waits for people, and what today costs. Live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from denizen.domain.approval import ApprovalStatus
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.embedding_progress import EmbeddingProgress
from denizen.domain.ids import TurnId
from denizen.domain.principal import Principal, RoleName
from denizen.domain.record import record
from denizen.domain.source import SyncRun
from denizen.domain.statistics import UsageSummary, change_percent
from denizen.domain.turn import Turn
from denizen.engine.accounts.connected_accounts import AccountState
from denizen.engine.inspection.overview import SystemOverview
from denizen.ports.setup import StepState
from denizen.ports.source import ReadingProgress
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.request import QueryParameter
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.config_sections import find_setting
from denizen.web.pages.page import Frame, build_frame, render
from denizen.web.pages.setup import find_open_steps

EXAMINED_EVERY_S = 60.0
EXAMINATION_S = 30.0
THOROUGH_S = 120.0
_EXAMINED = QueryParameter(name="examined", choices=("", "wait"))


@record(kw_only=True)
class KnowledgeState:
    """`sources` are all, `failing` the names of those whose last reading failed. `indexing` is None where nothing is
    indexed now.
    """

    sources: int
    failing: Sequence[str]
    last_sync: SyncRun | None
    indexing: ReadingProgress | None
    embedding: EmbeddingProgress | None


@record
class Finding:
    """A finding, and what to call and where to find the form that mends it, where the finding names its setting."""

    diagnosis: Diagnosis
    form: tuple[str, str] | None = None


@record(kw_only=True)
class OverviewPage:
    """The context of `admin/overview.html`. `running` and `failed` are the turns that the reader may see, `hidden` how
    many more run in private; `queued` are those of all that wait behind others; `mine` is how many calls the reader
    may decide about. `trend` compares today with yesterday, in percent. Until it `is_examined` there are no findings:
    the first look does not wait for the checks. `setup` are the steps that are open, for owners.
    """

    frame: Frame
    overview: SystemOverview
    running: Sequence[Turn]
    failed: Sequence[Turn]
    hidden: int
    queued: frozenset[TurnId]
    mine: int
    today: UsageSummary
    trend: float | None
    is_examined: bool
    problems: Mapping[str, str]
    findings: Sequence[Finding]
    working: Sequence[Diagnosis]
    accounts: Sequence[AccountState]
    knowledge: KnowledgeState | None
    setup: Sequence[StepState] = ()


class OverviewPages:
    """The route of the overview, and that which examines everything thoroughly. Findings are kept for a minute."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._findings: Sequence[Diagnosis] = ()
        self._examined_s: float | None = None
        self._lock = anyio.Lock()

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("GET", "/admin", self.show, Access.ADMIN),
            SitePageRoute("POST", "/admin/examination", self.examine, Access.ADMIN),
        ]

    async def show(self, request: Request) -> Response:
        deps, reader = self._deps, get_principal(request)
        queries = deps.engine.queries
        found, today = await queries.load_overview(), await deps.engine.statistics.overview(1)
        running = await self._readable(found.running, reader)
        mine = await deps.engine.turns.approvals.list_for(reader, status=ApprovalStatus.PENDING)
        findings = await self._find_diagnoses(may_wait=bool(_EXAMINED.read_text(request)))
        page = OverviewPage(
            frame=build_frame(request, deps),
            overview=found,
            running=running,
            failed=await self._readable(found.failed, reader),
            hidden=len(found.running) - len(running),
            queued=deps.engine.turns.here.queued,
            mine=len(mine),
            today=today,
            trend=change_percent(today.total.messages, today.before.messages),
            is_examined=self._examined_s is not None,
            problems=await deps.instance.find_problems(),
            findings=[self._find_form(each) for each in findings if each.severity is not Severity.OK],
            working=[each for each in findings if each.severity is Severity.OK],
            accounts=deps.instance.list_accounts(),
            knowledge=await self._load_knowledge(),
            setup=await find_open_steps(deps) if RoleName.OWNER in reader.roles else (),
        )
        return render("admin/overview.html", page)

    def _find_form(self, diagnosis: Diagnosis) -> Finding:
        has_forms = self._deps.configuration is not None
        return Finding(diagnosis, find_setting(f"{diagnosis.fix} {diagnosis.what}") if has_forms else None)

    async def examine(self, request: Request) -> Response:
        """Asks models and platforms, too."""
        del request
        with anyio.move_on_after(THOROUGH_S) as deadline:
            await self._examine(is_thorough=True)
        if deadline.cancelled_caught:
            self._note([_slow(THOROUGH_S)])
        return RedirectResponse("/admin#health", status_code=303)

    async def _readable(self, turns: Sequence[Turn], reader: Principal) -> list[Turn]:
        return [turn for turn in turns if await self._deps.engine.queries.may_read(turn, reader)]

    async def _find_diagnoses(self, *, may_wait: bool) -> Sequence[Diagnosis]:
        """Returns what was found last; where the caller may wait, what was found within the last minute."""
        if may_wait:
            async with self._lock:
                age_s = self._deps.clock.monotonic_s() - (self._examined_s or 0)
                if self._examined_s is None or age_s > EXAMINED_EVERY_S:
                    with anyio.move_on_after(EXAMINATION_S) as deadline:
                        await self._examine(is_thorough=False)
                    if deadline.cancelled_caught:
                        self._note([_slow(EXAMINATION_S)])
        return self._findings

    async def _examine(self, *, is_thorough: bool) -> None:
        self._note(await self._deps.instance.diagnose(is_thorough=is_thorough))

    def _note(self, findings: Sequence[Diagnosis]) -> None:
        self._findings, self._examined_s = findings, self._deps.clock.monotonic_s()

    async def _load_knowledge(self) -> KnowledgeState | None:
        knowledge = self._deps.knowledge
        if knowledge is None:
            return None
        known = await knowledge.catalog.list_known()
        runs = await knowledge.sync.list_runs(limit=1)
        return KnowledgeState(
            sources=len(known),
            failing=[each.source.label or each.source.id for each in known if each.state and each.state.error],
            last_sync=runs[0] if runs else None,
            indexing=knowledge.indexing(),
            embedding=await knowledge.embedding(),
        )


def _slow(seconds: float) -> Diagnosis:
    fix = "Look again later; `denizen doctor` on the server shows each check as it ends."
    return Diagnosis(Severity.WARNING, f"The checks took longer than {seconds:.0f} s.", fix)
