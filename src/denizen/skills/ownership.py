"""What only owners may have done for them, whatever the gate was told."""

from __future__ import annotations

from denizen.skill import NotAllowed, ToolContext

OWNER = "owner"


def require_owner(context: ToolContext, what: str) -> None:
    """Raises NotAllowed for everybody else."""
    if OWNER not in context.principal.roles:
        raise NotAllowed(f"only an owner may {what}")
