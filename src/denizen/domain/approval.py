"""A human's decision on one pending call: who may give it, what it means, and how long it holds. Pure.

The engine's `gate/approvals.py` keeps the records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from denizen.domain.conversation import Place
from denizen.domain.ids import AgentName, ConversationId, TurnId, derive
from denizen.domain.json import Json
from denizen.domain.principal import Principal, PrincipalKind, RoleName
from denizen.domain.record import record
from denizen.domain.tool import Taint, Tier

GRANT_TIME = timedelta(hours=1)
"""How long a call that was approved for a while needs no further word."""
MAX_NOTE_CHARS = 500
OTHER_WAYS = "with `denizen approvals`, on the page or over the API"
"""How people decide where there is no card for them, in the middle of a sentence."""
TIMEOUT = "timeout"
"""Stands for who decided where nobody did and the rule grants then."""


class ApprovalStatus(StrEnum):
    """How far an approval has come: people still have to decide, they decided, or the time ran out."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"

    @property
    def is_final(self) -> bool:
        return self is not ApprovalStatus.PENDING


class Deciders(StrEnum):
    """Who may decide: the one who asked, those of a role, or so many of those of a role."""

    REQUESTER = "requester"
    ROLE = "role"
    QUORUM = "quorum"


class ApprovalChoice(StrEnum):
    """A vote on a pending call: yes, yes for an hour here, or no."""

    ONCE = "once"
    HOUR = "hour"
    DENY = "deny"


class AskerReach(StrEnum):
    """How people can be asked about what somebody wanted: by a card on their platform, or while they watch.

    NOBODY: there is none to ask, as behind a program that did not ask to wait, so the answer is no at once. WAITS: a
    program that asked to wait, until somebody decides with the command line or the API. OTHERS: not the one who asked,
    who is a program, but those who see the card. ELSEWHERE: not where it was asked, which has no buttons and which
    strangers read; others decide on other surfaces. PRIVATE: by a card that only the asker, or the members of a private
    thread, see; others who decide are asked where they are.
    """

    NOBODY = ""
    CARD = "card"
    WATCHER = "watcher"
    WAITS = "waits"
    OTHERS = "others"
    ELSEWHERE = "elsewhere"
    PRIVATE = "private"


@record
class ApprovalRule:
    """How approvals are had. `timeout_s` 0 waits for ever; without a decision in time the answer is no, or yes where
    `grant_on_timeout` says so. `role` and `quorum` count for their kinds of deciders.
    """

    deciders: Deciders = Deciders.REQUESTER
    role: str = "owner"
    quorum: int = 2
    people: frozenset[str] = frozenset()
    """Keys of principals who may decide whatever else is said."""
    timeout_s: float = 300.0
    grant_on_timeout: bool = False


@record(kw_only=True)
class ApprovalRequest:
    """The call that people are asked about, and who wants it. `requester` is the key of the principal; `preview` tells
    people in their words what would happen. `is_exact`: a yes for an hour holds for the very same arguments only.
    """

    turn_id: TurnId
    agent: AgentName
    requester: str
    requester_name: str = ""
    place: Place
    conversation_id: ConversationId
    tool: str
    args: Mapping[str, Json]
    tier: Tier
    reason: str
    preview: str
    is_exact: bool = False


@record(kw_only=True)
class ApprovalDecision:
    """Who ended an approval: `by` is the key of a principal, TIMEOUT, or empty where nobody decided."""

    by: str = ""
    name: str = ""
    at: datetime | None = None
    note: str = ""


@record(kw_only=True)
class Approval:
    """One call that waits for people, or waited. `id` derives from the call, so that asking twice is asking once.

    `voices` are the keys of those who said yes so far.
    """

    id: str
    request: ApprovalRequest
    rule: ApprovalRule
    created_at: datetime
    expires_at: datetime | None
    status: ApprovalStatus = ApprovalStatus.PENDING
    voices: tuple[str, ...] = ()
    decision: ApprovalDecision = field(default_factory=ApprovalDecision)

    @property
    def waited_s(self) -> float:
        """From asking to the decision; 0 while there is none."""
        return max((self.decision.at - self.created_at).total_seconds(), 0.0) if self.decision.at else 0.0


@record(kw_only=True)
class ApprovalGrant:
    """A yes for an hour: this tool for this requester of this agent in this conversation, where the same people have to
    decide. `args` is the digest of who these are and of the only arguments that it holds for, if it is not for any.
    """

    id: str
    agent: AgentName
    requester: str
    conversation_id: ConversationId
    tool: str
    args: str
    given_by: str
    expires_at: datetime


class VoteOutcome(StrEnum):
    """The effect of a vote: it DECIDED, was COUNTED towards a quorum, came when all was decided (OVER), came too LATE,
    or is of somebody who may not (REFUSED).
    """

    DECIDED = "decided"
    COUNTED = "counted"
    OVER = "over"
    LATE = "late"
    REFUSED = "refused"


@record
class ApprovalRuling:
    """`approval` as it is now; `text` is for the one who spoke."""

    outcome: VoteOutcome
    approval: Approval
    text: str


def derive_approval_id(call_key: str) -> str:
    """Returns the id of the approval of the call with that idempotency key."""
    return derive("apr", call_key)


def is_operator(voter: Principal) -> bool:
    """Somebody with a shell on the machine, who could do anything without asking."""
    return voter.kind is PrincipalKind.LOCAL and RoleName.OWNER in voter.roles


def may_decide(approval: Approval, voter: Principal) -> bool:
    rule = approval.rule
    if voter.key in rule.people or is_operator(voter):
        return True
    if rule.deciders is Deciders.REQUESTER:
        return voter.key == approval.request.requester
    return has_role(voter, rule.role)


def decides_alone(rule: ApprovalRule, voter: Principal) -> bool:
    """Whether one yes is enough. Only such a yes can be for an hour: of several people each has seen this call only."""
    return rule.deciders is not Deciders.QUORUM or voter.key in rule.people or is_operator(voter)


def needs_others(rule: ApprovalRule, requester: Principal) -> bool:
    """Whether the one who asked cannot decide it alone."""
    if requester.key in rule.people or is_operator(requester) or rule.deciders is Deciders.REQUESTER:
        return False
    return rule.deciders is Deciders.QUORUM or not has_role(requester, rule.role)


def has_role(voter: Principal, role: str) -> bool:
    """An owner is everything that an admin or a member is."""
    implied = role in (RoleName.ADMIN, RoleName.MEMBER) and RoleName.OWNER in voter.roles
    return role in voter.roles or implied


def decide_approval(
    approval: Approval, voter: Principal, choice: ApprovalChoice, *, now: datetime, note: str = ""
) -> ApprovalRuling:
    """Decides what one vote means. One no decides; a yes decides once there are enough, or when it comes from a
    person whom the rule names or from the operator. The same vote twice changes nothing.
    """
    if not may_decide(approval, voter):
        return ApprovalRuling(
            VoteOutcome.REFUSED, approval, f"Only {describe_deciders(approval.rule)} may decide this."
        )
    if approval.status.is_final:
        return ApprovalRuling(VoteOutcome.OVER, approval, f"This was decided already: {describe_end(approval)}.")
    if is_past_deadline(approval, now):
        closed = expire_approval(approval)
        return ApprovalRuling(VoteOutcome.LATE, closed, f"This came too late: {describe_end(closed)}.")
    if choice is ApprovalChoice.DENY:
        ended = _end(approval, ApprovalStatus.DENIED, voter, now, note)
        return ApprovalRuling(VoteOutcome.DECIDED, ended, "Denied.")
    voices = approval.voices if voter.key in approval.voices else (*approval.voices, voter.key)
    heard = replace(approval, voices=voices)
    is_alone = decides_alone(approval.rule, voter)
    needed = 1 if is_alone else approval.rule.quorum
    if len(voices) < needed:
        return ApprovalRuling(VoteOutcome.COUNTED, heard, f"Your yes is counted: {len(voices)} of {needed}.")
    ended = _end(heard, ApprovalStatus.APPROVED, voter, now, note)
    is_for_an_hour = choice is ApprovalChoice.HOUR and is_alone
    return ApprovalRuling(VoteOutcome.DECIDED, ended, "Approved, for an hour here." if is_for_an_hour else "Approved.")


def is_past_deadline(approval: Approval, now: datetime) -> bool:
    return approval.expires_at is not None and now >= approval.expires_at


def expire_approval(approval: Approval) -> Approval:
    """As it is when nobody has decided in time."""
    status = ApprovalStatus.APPROVED if approval.rule.grant_on_timeout else ApprovalStatus.EXPIRED
    by = TIMEOUT if status is ApprovalStatus.APPROVED else ""
    return replace(approval, status=status, decision=ApprovalDecision(by=by, at=approval.expires_at))


def cancel_approval(approval: Approval, now: datetime) -> Approval:
    """As it is when the turn that wanted the call has ended, or goes on, without it."""
    decision = ApprovalDecision(at=now, note="no longer needed, since what it was asked for has ended")
    return replace(approval, status=ApprovalStatus.EXPIRED, decision=decision)


def _end(approval: Approval, status: ApprovalStatus, voter: Principal, now: datetime, note: str) -> Approval:
    said = " ".join(note.split())[:MAX_NOTE_CHARS]
    return replace(approval, status=status, decision=ApprovalDecision(by=voter.key, name=voter.name, at=now, note=said))


def describe_deciders(rule: ApprovalRule) -> str:
    """Such as "the one who asked", in the middle of a sentence."""
    match rule.deciders:
        case Deciders.REQUESTER:
            who = "the one who asked"
        case Deciders.ROLE:
            who = f"people with the role '{rule.role}'"
        case Deciders.QUORUM:
            who = f"people with the role '{rule.role}', {rule.quorum} of them,"
    return f"{who} or those whom the configuration names" if rule.people else who


def describe_end(approval: Approval) -> str:
    """How it ended, in the middle of a sentence."""
    return describe_decision(approval.status, approval.decision)


def describe_decision(status: ApprovalStatus, decision: ApprovalDecision) -> str:
    """The decision about a call in that state, in the middle of a sentence."""
    name = decision.name or decision.by
    note = f": {decision.note}" if decision.note else ""
    match status:
        case ApprovalStatus.PENDING:
            return "nobody has decided yet"
        case ApprovalStatus.APPROVED if decision.by == TIMEOUT:
            return "approved, since nobody decided in time"
        case ApprovalStatus.APPROVED:
            return f"approved by {name}{note}"
        case ApprovalStatus.DENIED:
            return f"denied by {name}{note}"
        case ApprovalStatus.EXPIRED:
            return f"it was not approved{note}" if decision.note else "nobody approved it in time"


def can_be_asked(rule: ApprovalRule, reach: AskerReach, *, is_watched: bool) -> bool:
    """Whether there is anybody who could decide: an approval that nobody can give is none."""
    if reach is AskerReach.NOBODY:
        return False
    if rule.deciders is not Deciders.REQUESTER or rule.people:
        return True
    return reach in (AskerReach.CARD, AskerReach.PRIVATE, AskerReach.WAITS) or (
        reach is AskerReach.WATCHER and is_watched
    )


def digest_args(args: Mapping[str, Json]) -> str:
    """The same for the same arguments, in whatever order they were written."""
    return derive("args", json.dumps(args, sort_keys=True))


def combine_rules(one: ApprovalRule, other: ApprovalRule) -> ApprovalRule:
    """Returns the rule that is as strict as both. A quorum is stricter than a role, and a role stricter than the asker,
    in whose place at least admins decide: other members have no authority over the asker. Besides, only people whom
    both rules name decide. The time is that of `one`.
    """
    rules = (one, other)
    kinds = {rule.deciders for rule in rules}
    roles = {str(rule.role) for rule in rules if rule.deciders is not Deciders.REQUESTER}
    if Deciders.REQUESTER in kinds and roles:
        roles.add(RoleName.ADMIN)
    return replace(
        one,
        deciders=next(kind for kind in (Deciders.QUORUM, Deciders.ROLE, Deciders.REQUESTER) if kind in kinds),
        role=_find_highest(roles) if roles else one.role,
        quorum=max((rule.quorum for rule in rules if rule.deciders is Deciders.QUORUM), default=one.quorum),
        people=one.people & other.people,
        grant_on_timeout=one.grant_on_timeout and other.grant_on_timeout,
    )


def _find_highest(roles: set[str]) -> str:
    """Returns the highest of the roles. Above those that cannot be compared is the owner."""
    if len(roles) == 1:
        return next(iter(roles))
    return RoleName.ADMIN if roles == {RoleName.ADMIN, RoleName.MEMBER} else RoleName.OWNER


def meets_rule(given: ApprovalRule, demanded: ApprovalRule) -> bool:
    """Whether a decision under the given rule is one under the demanded one too."""
    return same_people(combine_rules(given, demanded), given)


def same_people(one: ApprovalRule, other: ApprovalRule) -> bool:
    """Whether the same people decide under both."""
    return _format_deciders(one) == _format_deciders(other)


def _format_deciders(rule: ApprovalRule) -> str:
    """The part of the rule that says who decides, as text to compare and to hash."""
    role = "" if rule.deciders is Deciders.REQUESTER else rule.role
    quorum = rule.quorum if rule.deciders is Deciders.QUORUM else 1
    return json.dumps([rule.deciders, sorted(rule.people), role, quorum])


def plan_grant(approval: Approval, *, now: datetime) -> ApprovalGrant:
    """Returns the grant that a yes for an hour gives."""
    return ApprovalGrant(
        id=derive("grant", approval.id),
        agent=approval.request.agent,
        requester=approval.request.requester,
        conversation_id=approval.request.conversation_id,
        tool=approval.request.tool,
        args=_digest_grant(approval.rule, approval.request.args if approval.request.is_exact else None),
        given_by=approval.decision.name or approval.decision.by,
        expires_at=now + GRANT_TIME,
    )


def grant_covers(
    grant: ApprovalGrant, args: Mapping[str, Json], rule: ApprovalRule, *, is_exact: bool, taint: frozenset[Taint]
) -> bool:
    """Whether the call needs no word of its own. One for which others have to be asked does: `rule` says who. What a
    turn has read from elsewhere may have chosen the arguments, so a grant for any arguments is not for such a turn.
    """
    if grant.args == _digest_grant(rule, args):
        return True
    return grant.args == _digest_grant(rule, None) and not is_exact and not taint


def _digest_grant(rule: ApprovalRule, args: Mapping[str, Json] | None) -> str:
    """`args` None stands for any."""
    return derive("grant", _format_deciders(rule), "" if args is None else digest_args(args))
