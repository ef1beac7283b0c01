"""What a request over HTTP means for turns: its place, its platform id, and whose turns its caller may see."""

from __future__ import annotations

from starlette.requests import Request

from denizen.domain import conversation
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.ids import TurnId, derive, fresh, turn_id
from denizen.domain.principal import Principal, RoleName
from denizen.domain.turn import Inbound, Turn
from denizen.web.guard import get_principal

API = "api"
"""The platform of OpenAI-compatible requests."""

WEB = "web"
"""The platform of `/api/chat`: the page, and programs that use the client."""

TURN_HEADER = "X-Denizen-Turn"
IDEMPOTENCY_HEADER = "idempotency-key"


def own_place(platform: str, principal: Principal, session: str) -> Place:
    """The place of a principal's own session of that name. Raises InvalidInput for a name that cannot be."""
    return conversation.own_place(platform, principal.key, session)


def message_key(principal: Principal, idempotency_key: str) -> str:
    """The platform id of a message: the same for the same key of the same principal, else a new one (promise 1)."""
    return derive("idem", principal.key, idempotency_key) if idempotency_key else fresh("req")


def turn_id_for(inbound: Inbound) -> TurnId:
    """The id that the turn of this message has, or will have."""
    return turn_id(inbound.agent, inbound.place.platform, inbound.platform_id)


def may_see_all(principal: Principal) -> bool:
    """Owners and admins."""
    return bool(principal.roles & {RoleName.OWNER, RoleName.ADMIN})


def require_admin(request: Request) -> None:
    """Raises NotAllowed for everybody but owners and admins."""
    if not may_see_all(get_principal(request)):
        raise NotAllowed("This is for owners and admins.", code="admin_only", fix="Use a key with the role admin.")


def check_own(turn: Turn, principal: Principal) -> None:
    """Raises NotFound for a turn of somebody else, unless an owner or admin asks. The error is the one of a turn that
    does not exist, so that nobody learns whether it does.
    """
    if turn.principal.key == principal.key or may_see_all(principal):
        return
    raise NotFound(f"There is no turn {turn.id}.", code="turn_not_found")
