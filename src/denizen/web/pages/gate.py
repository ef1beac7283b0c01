"""The gate at `/admin/gate`: tools by tier, the rules in their order, what the observer decided, and a trial of other
rules on past calls. Admins read it; owners try rules and use them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.approval import ApprovalStatus, describe_deciders
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.principal import Principal, RoleName
from denizen.domain.record import record
from denizen.domain.tool import Tier
from denizen.engine.configuration.tool_policy import GatePolicy, ToolRule
from denizen.engine.inspection.past_calls import PastCall, PolicyTrial
from denizen.engine.inspection.queries import ToolInfo
from denizen.ports.configuration import ConfigurationEdit, ConfigurationFiles, PlannedChange
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import PlanPolicy, WebDependencies
from denizen.web.http.request import read_form
from denizen.web.http.routing import Access, AccessRoute, SitePageRoute
from denizen.web.pages.forms import find_problem, lead_to
from denizen.web.pages.page import Frame, build_frame, render
from denizen_sdk.errors import ProblemDetails

PATH = "/admin/gate"
RULES = "gate.rules"
OBSERVED = 30
ACTIONS = ("ask", "deny", "approve")
_NOTICES = {"saved": "The rules are saved, and hold now.", "same": "Nothing was changed."}
_TIERS: Mapping[Tier, str] = {
    Tier.HARMLESS: "They run.",
    Tier.LIMITED: "They run within a rate limit.",
    Tier.SENSITIVE: "A rule, the observer or people say yes first.",
    Tier.DANGEROUS: "The observer or people say yes first, whatever rules approve.",
}


@record
class TierGroup:
    """The tools of one tier, and what that tier means."""

    tier: Tier
    meaning: str
    tools: Sequence[ToolInfo]


@record
class RuleRow:
    """A rule with its conditions in words. `matches` is how many past calls it fits first, None where the reader may
    not know.
    """

    rule: ToolRule
    conditions: Sequence[tuple[str, str]]
    deciders: str
    matches: int | None


@record(kw_only=True)
class RulesTrial:
    """Rules that were tried: what they would have decided otherwise, and the change of the file that using them is."""

    result: PolicyTrial
    change: PlannedChange


@record(kw_only=True)
class GatePage:
    """The context of `admin/gate.html`. `observed` are calls that the observer decided about, as far as the reader may
    see their turns. `rules_text` are the rules as they are written, and `typed` is one that is to be added. `may_try`
    is for owners, where the configuration can be changed.
    """

    frame: Frame
    policy: GatePolicy
    tiers: Sequence[TierGroup]
    rules: Sequence[RuleRow]
    is_observed: bool
    observed: Sequence[PastCall]
    waiting: int
    agents: Sequence[str]
    may_try: bool
    rules_text: str = ""
    typed: Mapping[str, str]
    trial: RulesTrial | None = None
    notice: str = ""
    problem: ProblemDetails | None = None


class GatePages:
    """The routes of the gate's page. Whoever tries a rule learns which calls it fits, so only owners do."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self.queries = deps.engine.queries

    @property
    def routes(self) -> list[AccessRoute]:
        files, plan = self._deps.configuration, self._deps.plan_policy
        return [
            SitePageRoute("GET", PATH, self.show, Access.ADMIN),
            *(_TrialRoutes(self, files, plan).routes if files is not None and plan is not None else ()),
        ]

    async def show(self, request: Request) -> Response:
        files, text = self._deps.configuration, ""
        may_try = files is not None and self._deps.plan_policy is not None
        if files is not None and may_try and _is_owner(get_principal(request)):
            text = await files.read_block(RULES)
        return await self.render(request, text)

    async def render(
        self,
        request: Request,
        rules_text: str,
        *,
        typed: Mapping[str, str] | None = None,
        trial: RulesTrial | None = None,
        error: DenizenError | None = None,
    ) -> Response:
        deps, reader = self._deps, get_principal(request)
        past, policy, is_owner = self.queries.past_calls, deps.engine.runtime.current.policy, _is_owner(reader)
        matches = (await past.try_policy(policy)).matches if is_owner and policy.rules else None
        tools = await self.queries.list_tools()
        waiting = await deps.engine.turns.approvals.list_for(reader, status=ApprovalStatus.PENDING)
        observed = await past.list_observed(limit=OBSERVED)
        problem = find_problem(error)
        page = GatePage(
            frame=build_frame(request, deps, path=PATH),
            policy=policy,
            tiers=[TierGroup(tier, _TIERS[tier], [each for each in tools if each.tier is tier]) for tier in Tier],
            rules=[_row(rule, matches[at] if matches else None) for at, rule in enumerate(policy.rules)],
            is_observed=await past.is_observed(),
            observed=[each for each in observed if await self.queries.may_read(each.turn, reader)],
            waiting=len(waiting),
            agents=[agent.name for agent in self.queries.list_agents()],
            may_try=is_owner and deps.plan_policy is not None and deps.configuration is not None,
            rules_text=rules_text,
            typed=typed or {},
            trial=trial,
            notice=_NOTICES.get(request.query_params.get("done", ""), ""),
            problem=problem,
        )
        return render("admin/gate.html", page, status=problem.status if problem else 200)


class _TrialRoutes:
    """The routes that try rules, and that make them those in force."""

    def __init__(self, pages: GatePages, files: ConfigurationFiles, plan_policy: PlanPolicy) -> None:
        self._pages = pages
        self._files = files
        self._plan_policy = plan_policy

    @property
    def routes(self) -> list[AccessRoute]:
        return [
            SitePageRoute("POST", f"{PATH}/trial", self.attempt, Access.OWNER),
            SitePageRoute("POST", f"{PATH}/rules", self.use, Access.OWNER),
        ]

    async def attempt(self, request: Request) -> Response:
        """Tries the rules that were typed, with the one of the fields. Nothing is written."""
        form = await read_form(request)
        text = _read_rules(form)
        try:
            if not form.get("tool", "").strip() and any(form.get(name) for name in ("role", "agent", "reason")):
                raise InvalidInput(
                    "The new rule says for no tool.", code="field_invalid", fix="Name a tool, or a pattern such as *."
                )
            text = _add_rule(text, form)
            edit = ConfigurationEdit(blocks={RULES: text})
            policy, change = await self._plan_policy(edit), await self._files.plan(edit)
            result = await self._pages.queries.past_calls.try_policy(policy)
        except DenizenError as error:
            return await self._pages.render(request, _read_rules(form), typed=form, error=error)
        return await self._pages.render(request, text, trial=RulesTrial(result=result, change=change))

    async def use(self, request: Request) -> Response:
        form = await read_form(request)
        text = _read_rules(form)
        edit = ConfigurationEdit(blocks={RULES: text})
        try:
            done = await self._files.apply(get_principal(request), edit, expected=form.get("digest", ""))
        except DenizenError as error:
            return await self._pages.render(request, text, error=error)
        return lead_to(PATH, done="saved" if done.changed else "same")


def _is_owner(reader: Principal) -> bool:
    return RoleName.OWNER in reader.roles


def _read_rules(form: Mapping[str, str]) -> str:
    return form.get("rules", "").replace("\r\n", "\n")


def _add_rule(text: str, form: Mapping[str, str]) -> str:
    """Returns the rules with the one of the fields, before or after them. JSON in it is YAML, too."""
    tool = form.get("tool", "").strip()
    if not tool:
        return text
    said = {
        "tool": tool,
        "action": form.get("action", ""),
        "roles": [form["role"]] if form.get("role") else [],
        "agents": [form["agent"]] if form.get("agent") else [],
        "reason": form.get("reason", "").strip(),
    }
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in said.items() if value]
    rule = "- " + "\n  ".join(lines) + "\n"
    rest = f"{text.rstrip()}\n" if text.strip() else ""
    return f"{rest}{rule}" if form.get("place") == "last" else f"{rule}{rest}"


def _row(rule: ToolRule, matches: int | None) -> RuleRow:
    return RuleRow(
        rule, list(_list_conditions(rule)), describe_deciders(rule.approval) if rule.approval else "", matches
    )


def _list_conditions(rule: ToolRule) -> Iterator[tuple[str, str]]:
    for name, pattern in rule.args.items():
        yield f"argument {name}", pattern
    named = {
        "asker has role": rule.roles,
        "asker": rule.principals,
        "agent": rule.agents,
        "platform": rule.platforms,
        "community": rule.guilds,
        "channel": rule.channels,
        "comes from": rule.origins,
    }
    for name, values in named.items():
        if values:
            yield name, " or ".join(sorted(values))
