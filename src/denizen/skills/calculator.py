"""Arithmetic that comes out right, whatever the model would guess."""

from __future__ import annotations

from typing import Annotated

from denizen.skill import Skill, Tier, ToolContext, ToolError
from denizen.skills.arithmetic import CalculationError, calculate, format_number

skill = Skill("calculator", description="Exact arithmetic.")


@skill.tool(tier=Tier.HARMLESS, read_only=True)
async def calculator(
    context: ToolContext,  # noqa: ARG001
    expression: Annotated[str, "such as (2+3)**2 / sqrt(7)"],
) -> str:
    """Calculates: + - * / // % **, sqrt, log, sin (radians), round, min, max, factorial and more."""
    try:
        return format_number(calculate(expression))
    except CalculationError as error:
        raise ToolError(str(error)) from error
