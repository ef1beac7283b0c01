"""The terminal as a channel: called by `denizen ask` and `denizen chat`, or by a running server on their behalf."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from denizen.app.build import Denizen
from denizen.app.terminal_messages import AnsweringAgent, MoveReport, TerminalMessage
from denizen.domain.agent import Agent
from denizen.domain.approval import ApprovalChoice, AskerReach
from denizen.domain.conversation import Place
from denizen.domain.errors import NotAllowed
from denizen.domain.events import TurnFinished
from denizen.domain.handover import is_own_session, plan_handover
from denizen.domain.ids import AgentName, TurnId, fresh
from denizen.domain.json import Json
from denizen.domain.message import Author, TextPart
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, Turn, TurnRequest
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.commands.admin import run_observer_command
from denizen.engine.commands.schedules import ScheduleCaller, read_schedules_command, run_schedules_command
from denizen.engine.commands.store import describe_progress, run_migrate_command
from denizen.engine.workflows.catalog import RunOrder, new_key
from denizen.web.api.records import agent_to_wire, event_to_wire, find_model, model_to_wire, tool_to_wire
from denizen_sdk.agents import AgentListing, ModelListing, ToolListing
from denizen_sdk.turns import ChatEvent

PLATFORM = "terminal"


class TerminalService:
    """Turns and commands of the operator, in the records of the API."""

    def __init__(self, denizen: Denizen) -> None:
        self._denizen = denizen
        self._last: TurnId | None = None

    def check(self) -> None:
        """Raises NotAllowed when the terminal is switched off."""
        self._denizen.require_terminal()

    def plan_turn(self, message: TerminalMessage) -> TurnRequest:
        """Returns the message as the engine takes it. Raises NotFound for an unknown agent."""
        operator = self._denizen.operator
        return TurnRequest(
            agent=self._denizen.queries.get_agent(message.agent).name,
            place=Place(PLATFORM, message.command, message.session),
            sender=Sender(
                Author(operator.id, operator.name),
                operator,
                AskerReach.WATCHER if message.can_prompt else AskerReach.WAITS if message.waits else AskerReach.NOBODY,
            ),
            parts=(TextPart(message.text),),
            platform_id=message.key,
            session=SessionChoice(is_new=message.is_new),
            options=RequestOptions(model=message.model),
        )

    async def stream(self, message: TerminalMessage) -> AsyncGenerator[ChatEvent]:
        """Starts the turn of the message and yields what happens. Raises as `plan_turn` and `TurnRunner.stream` do."""
        self.check()
        request, handovers = self.plan_turn(message), self._denizen.services.handovers

        async def count(turn: Turn, *, is_new: bool) -> None:
            if is_new and is_own_session(request.place):
                await handovers.take_session_message(request.place, turn.agent)

        async with aclosing(self._denizen.turns.stream(request, on_open=count)) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    self._last = event.turn_id
                for sent in event_to_wire(event, self._denizen.operator):
                    yield sent

    async def finish(self) -> None:
        """Waits for the hooks after the last turn, before the process ends too."""
        if self._last is not None:
            await self._denizen.turns.finish_hooks(self._last)

    def cancel(self, message: TerminalMessage) -> bool:
        """Stops the turn of a message; False when none runs here."""
        return self._denizen.turns.cancel_message(self.plan_turn(message))

    async def decide(self, approval_id: str, choice: str, note: str) -> None:
        """Decides about a call that waits: `choice` is once, hour or deny. Raises NotFound."""
        approvals, operator = self._denizen.turns.approvals, self._denizen.operator
        await approvals.decide(approval_id, operator, ApprovalChoice(choice), note=note)

    async def list_agents(self) -> Sequence[AgentListing]:
        """Returns the agents, the default one first."""
        return [self._describe(agent) for agent in self._denizen.queries.list_agents()]

    async def get_agent(self, name: str) -> AgentListing:
        """Returns an agent, the default one without a name. Raises NotFound."""
        return self._describe(self._denizen.queries.get_agent(name))

    def _describe(self, agent: Agent) -> AgentListing:
        current = self._denizen.runtime.current
        model = find_model(current.models, agent.model)
        return agent_to_wire(agent, model, is_default=agent.name == current.default_agent)

    # --- hand-overs of a session of `denizen chat` -------------------------------------------------------------------

    async def find_answering(self, session: str, agent: str) -> AnsweringAgent:
        """Returns who answers the next message to that agent: who has the session, if it was handed over."""
        handovers = self._denizen.services.handovers
        found = await handovers.find_in_session(Place(PLATFORM, "chat", session))
        if found is None or handovers.is_in_force(found.handover):
            return AnsweringAgent(handovers.choose_agent(found, AgentName(agent)))
        return AnsweringAgent(agent, handovers.describe_end(found))

    async def hand_over(self, session: str, own: str, agent: str, minutes: int, messages: int) -> str:
        """Hands the session of an agent to another one for a while. Returns what to tell. Raises NotFound, NotAllowed
        for one that is off, and InvalidInput for limits that are not allowed.
        """
        services, place = self._denizen.services, Place(PLATFORM, "chat", session)
        target = self._denizen.queries.get_agent(agent)
        if not target.enabled:
            raise NotAllowed(f"{target.name} is switched off.", code="agent_off", fix="Switch it on first.")
        handover = plan_handover(target.name, services.clock.now(), minutes=minutes, messages=messages)
        account = await services.handovers.get_account(place, None, AgentName(own))
        return await services.handovers.begin(account, place, handover, key=fresh("handover"))

    async def end_handover(self, session: str) -> str:
        """Takes the session back. Returns what to tell; empty where nobody had it."""
        handovers, place = self._denizen.services.handovers, Place(PLATFORM, "chat", session)
        found = await handovers.find_in_session(place)
        if found is None:
            return ""
        said = await handovers.end(found.own, place, "You have ended it", key=fresh("handover"))
        await handovers.take_session_message(place, found.own)  # removes it: the terminal goes back by itself
        return said

    async def list_models(self, named: str = "") -> Sequence[ModelListing]:
        """Returns the models. Raises NotFound when one is named that agents may not use."""
        if named:
            self._denizen.runtime.current.models.get(named)
        return [model_to_wire(model) for model in self._denizen.queries.list_models()]

    async def list_tools(self, agent: str) -> Sequence[ToolListing]:
        """Returns the tools that an agent may use. Raises NotFound."""
        return [tool_to_wire(tool) for tool in await self._denizen.queries.list_tools(agent)]

    async def list_context(self, agent: str, session: str, model: str) -> Mapping[str, int]:
        """Returns the tokens of each part of the next prompt in a session of `denizen chat`. Raises NotFound."""
        use = await self._denizen.queries.load_context(Place(PLATFORM, "chat", session), agent, model)
        return {share.name: share.tokens for share in use.shares}

    async def run_migrate(self, action: str) -> MoveReport:
        """Does what `/migrate` is told. Raises InvalidInput, and what moving raises."""
        services = self._denizen.services
        if action != "status":
            await AuditLog(services.store, services.clock).switch(self._denizen.operator, "store", action)
        said = await run_migrate_command(action, services.store_move)
        return MoveReport(text=said, is_running=self._denizen.process.store_move.progress.is_running)

    async def report_move(self) -> MoveReport:
        """Tells how far a move of the store is."""
        progress = self._denizen.process.store_move.progress
        return MoveReport(text=describe_progress(progress), is_running=progress.is_running)

    async def run_schedules(self, typed: str, agent: str) -> str:
        """Does what is typed behind `/schedules`; a new one is for that agent. Raises what the command raises."""
        caller = ScheduleCaller(principal=self._denizen.operator, agent=agent, key=fresh("terminal"))
        return await run_schedules_command(read_schedules_command(typed), self._denizen.own_schedules, caller)

    async def start_workflow(self, name: str, given: Mapping[str, Json], trigger: str) -> str:
        """Starts a run of a workflow, and returns its id. Raises as `Workflows.start`."""
        return (await self._denizen.workflows.start(name, given, self._order_run(), trigger=trigger)).id

    async def rerun_workflow(self, run: str, from_node: str) -> str:
        """Starts a run once more, and returns the id of the new one. Raises as `Workflows.rerun`."""
        return (await self._denizen.workflows.rerun(TurnId(run), self._order_run(), from_node=from_node)).id

    def _order_run(self) -> RunOrder:
        operator = self._denizen.operator
        return RunOrder(key=new_key(operator), by=operator, reach=AskerReach.WAITS)

    async def run_observer(self, action: str) -> str:
        """Does what `/observer` is told, and returns the state afterwards in words. Raises InvalidInput."""
        services, policy = self._denizen.services, self._denizen.runtime.current.policy.observer
        said = await run_observer_command(action, services.observer, policy)
        if action != "status":
            await AuditLog(services.store, services.clock).switch(self._denizen.operator, "observer", action)
        return said
