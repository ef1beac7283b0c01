"""A question that a skill asks the model of its agent, beside the turn: no tools, no history, paid by who asked.

Made by the composition root, which hands it to skills (`denizen.skill`, `context.ask_model`).
"""

from __future__ import annotations

from denizen.domain.errors import Unavailable
from denizen.domain.message import Role, TextPart, text_of
from denizen.domain.prompt import PromptMessage, Segment
from denizen.engine.consult import Consult
from denizen.engine.runtime import Runtime
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope


class Aside:
    """How it is sent and paid for is `consult.py`'s business."""

    def __init__(self, runtime: Runtime, consult: Consult) -> None:
        self._runtime = runtime
        self._consult = consult

    async def __call__(self, scope: CallScope, instructions: str, text: str, *, max_output_tokens: int = 4000) -> str:
        """The answer's text. Raises Unavailable for an empty one, and what `Consult` raises."""
        async with self._runtime.lease() as generation:
            agent = generation.agent(scope.agent)
            can = generation.models.get(agent.model).capabilities
        request = ModelRequest(
            segments=(Segment("skill", instructions),),
            messages=(PromptMessage(Role.USER, (TextPart(text),)),),
            max_output_tokens=min(max_output_tokens, can.max_output_tokens or max_output_tokens),
            sampling=agent.sampling,
            conversation_key=f"{scope.session_id}-aside",
        )
        answer = text_of((await self._consult(scope, agent.model, request)).parts).strip()
        if not answer:
            raise Unavailable("The model gave no answer.", code="model_incomplete", fix="Try again.")
        return answer
