"""Turns at `/admin/turns`: the list, everything that is recorded of one, and one run again on another model.

Admins see what was not asked in private, owners all, as `/api/turns` does. Replays cost money that no budget counts, so
they are for owners.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.ids import TurnId
from denizen.domain.json import Json
from denizen.domain.principal import RoleName
from denizen.domain.record import record
from denizen.domain.routing import describe_route
from denizen.domain.trace import PromptUse
from denizen.domain.turn import CallRecord, Step, TurnStatus
from denizen.engine.gate.approval_card import mask_secrets
from denizen.engine.inspection.queries import TurnTrace
from denizen.ports.store import TurnListing, TurnSearch
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import QueryParameter, read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

if TYPE_CHECKING:
    from denizen.engine.inspection.replay import ReplayResult

PATH = "/admin/turns"
SHOWN = 50
PRICED_TOKENS = 1_000_000
_AGENT = QueryParameter(name="agent", max_chars=100)
_STATUS = QueryParameter(name="status", choices=("", *TurnStatus))
_PLATFORM = QueryParameter(name="platform", max_chars=50)
_DAYS = QueryParameter(name="days", default="30", low=1, high=365)
_SKIP = QueryParameter(name="skip", default="0", low=0, high=1_000_000)


@record(kw_only=True)
class TurnsPage:
    """The context of `admin/turns.html`. `hidden` is how many of these turns were asked in private and may not be seen.
    `here` is the address of this page, `older` and `newer` are those of the next ones, or empty.
    """

    frame: Frame
    rows: Sequence[TurnListing]
    hidden: int
    agents: Sequence[str]
    statuses: Sequence[str]
    chosen: Mapping[str, str]
    here: str
    older: str
    newer: str


@record(kw_only=True)
class TimelineStep:
    """A request to the model with what was in its prompt, if that was new, and the calls that it asked for.
    `prices` are what the prompt's segments would cost without the cache, as far as the price is known. `is_after`: the
    calls are those of the hooks after the answer.
    """

    step: Step | None
    prompt: PromptUse | None
    prices: Sequence[Decimal | None]
    calls: Sequence[TimelineCall]
    is_after: bool


@record
class TimelineCall:
    """A tool call with its arguments, without secrets."""

    record: CallRecord
    args: Sequence[tuple[str, Json]]


@record(kw_only=True)
class TurnPage:
    """The context of `admin/turn.html`. `models` are those with which the reader may replay the turn."""

    frame: Frame
    trace: TurnTrace
    route: str
    timeline: Sequence[TimelineStep]
    models: Sequence[str]
    replay: ReplayResult | None = None
    problem: ProblemDetails | None = None


class TurnPages:
    """The routes of turns."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._queries = deps.engine.queries

    @property
    def routes(self) -> list[AccessRoute]:
        one = f"{PATH}/{{turn_id}}"
        replay = [SitePageRoute("POST", f"{one}/replay", self.replay, Access.OWNER)]
        return [
            SitePageRoute("GET", PATH, self.list_turns, Access.ADMIN),
            SitePageRoute("GET", one, self.show, Access.ADMIN),
            *(replay if self._deps.engine.replay is not None else ()),
        ]

    async def list_turns(self, request: Request) -> Response:
        days, skip, status = _DAYS.read_number(request), _SKIP.read_number(request), _STATUS.read_text(request)
        chosen = {
            "agent": _AGENT.read_text(request),
            "status": status,
            "platform": _PLATFORM.read_text(request).strip(),
            "days": str(days),
        }
        found = await self._queries.search_turns(
            TurnSearch(
                agent=chosen["agent"],
                status=TurnStatus(status) if status else None,
                platform=chosen["platform"],
                since=self._deps.clock.now() - timedelta(days=days),
                skip=skip,
                limit=SHOWN + 1,
            )
        )
        reader, shown = get_principal(request), found[:SHOWN]
        rows = [each for each in shown if await self._queries.may_read(each.turn, reader)]

        def address(skipped: int) -> str:
            return f"{PATH}?{urlencode({**chosen, 'skip': skipped})}"

        page = TurnsPage(
            frame=build_frame(request, self._deps, path=PATH),
            rows=rows,
            hidden=len(shown) - len(rows),
            agents=[agent.name for agent in self._queries.list_agents()],
            statuses=tuple(TurnStatus),
            chosen=chosen,
            here=address(skip),
            older=address(skip + SHOWN) if len(found) > SHOWN else "",
            newer=address(max(skip - SHOWN, 0)) if skip else "",
        )
        return render("admin/turns.html", page)

    async def show(self, request: Request) -> Response:
        return await self._render(request, await self._load(request))

    async def replay(self, request: Request) -> Response:
        """Runs the turn again; nothing of it is recorded, and no tool runs."""
        trace, form = await self._load(request), await read_form(request)
        if self._deps.engine.replay is None:
            raise AssertionError("the route is there with a replay only")
        try:
            result = await self._deps.engine.replay(trace.turn.id, model=form.get("model", ""))
        except DenizenError as error:
            return await self._render(request, trace, problem=fill_in(describe_problem(error)))
        return await self._render(request, trace, result)

    async def _load(self, request: Request) -> TurnTrace:
        """Raises NotFound for what the reader may not see, too."""
        trace = await self._queries.get_turn(TurnId(request.path_params["turn_id"]))
        if not await self._queries.may_read(trace.turn, get_principal(request)):
            raise NotFound(f"There is no turn {trace.turn.id}.", code="turn_not_found")
        return trace

    async def _render(
        self,
        request: Request,
        trace: TurnTrace,
        result: ReplayResult | None = None,
        problem: ProblemDetails | None = None,
    ) -> Response:
        may_replay = self._deps.engine.replay is not None and RoleName.OWNER in get_principal(request).roles
        page = TurnPage(
            frame=build_frame(request, self._deps, path=PATH),
            trace=trace,
            route=describe_route(trace.turn.route) if trace.turn.route else "",
            timeline=[each async for each in self._list_steps(trace)],
            models=[model.name for model in self._queries.list_models()] if may_replay else [],
            replay=result,
            problem=problem,
        )
        return render("admin/turn.html", page, status=problem.status if problem else 200)

    async def _list_steps(self, trace: TurnTrace) -> AsyncGenerator[TimelineStep]:
        """Calls from before the first request belong to a step without one."""
        prompts = {prompt.step: prompt for prompt in trace.prompts}
        steps: dict[int, Step | None] = {step.number: step for step in trace.steps}
        for number in sorted({*steps, *prompts, *(call.step for call in trace.calls)}):
            prompt = prompts.get(number)
            calls = [call for call in trace.calls if call.step == number]
            yield TimelineStep(
                step=steps.get(number),
                prompt=prompt,
                prices=await self._price(prompt) if prompt else (),
                calls=[TimelineCall(call, mask_secrets(call.tool_call.args)) for call in calls],
                is_after=any(call in trace.hooks_after for call in calls),
            )

    async def _price(self, prompt: PromptUse) -> list[Decimal | None]:
        try:
            model = self._deps.engine.runtime.current.models.get(prompt.model)
        except NotFound:  # it is not configured any more
            return [None] * len(prompt.segments)
        usd = await model.estimate_cost_usd(PRICED_TOKENS, 0)
        return [None if usd is None else usd * segment.tokens / PRICED_TOKENS for segment in prompt.segments]
