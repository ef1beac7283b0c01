"""Questions to the owner, who answers whenever; off unless switched on.

A question reaches nobody but the owner, who would also be the one to approve of it, so asking has no effect that the
gate holds back. How often the owner is asked is limited by the inbox.
"""

from __future__ import annotations

from typing import Annotated

from denizen.skill import Param, Skill, Tier, ToolContext, ToolError

skill = Skill("questions", description="Asks the owner.")


@skill.tool(tier=Tier.LIMITED)
async def ask_user(context: ToolContext, question: Annotated[str, Param(max_length=1500)]) -> str:
    """Leaves the owner a question, without waiting. The answer comes here later, as a message."""
    if context.questions is None:
        raise ToolError("There is no inbox here.")
    key = await context.questions.ask(question)
    return f"Left for the owner ({key}). Do not wait: the answer will come as a message in this conversation."
