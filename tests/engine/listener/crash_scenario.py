"""Runs a process that crashes at each operation in turn, for tests of what a restart makes of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio

from denizen.domain.agent import Agent, HistorySettings
from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.errors import DenizenError
from denizen.domain.tool import ToolCall, ToolResult
from denizen.ports.model import ModelRequest
from denizen.ports.toolset import CallScope
from denizen.testing.scripted_model import ScriptedReply, call
from tests.engine.crash_injector import CrashingChannel, CrashingModel, CrashingStore, CrashInjector
from tests.engine.engine_fixture import ToolsetFixture
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform

LONG = "\n\n".join(f"Paragraph {n}. " + "word " * 120 for n in range(6))


@dataclass
class CrashScenario:
    """A world with one account that may die at any operation, and what its tools did."""

    world: World = field(default_factory=lambda: World(store=CrashingStore()))
    done: set[str] = field(default_factory=set[str])
    injector: CrashInjector = field(default_factory=CrashInjector)
    account_policy: AccountPolicy = field(default_factory=lambda: AccountPolicy(style=ReplyStyle(preview=False)))

    async def run_process(self, act: Callable[[PlatformFixture], Awaitable[None]], *, at: int = 0) -> bool:
        """Runs a process; False when it died at operation number `at`."""
        self.injector = CrashInjector(at)
        model = CrashingModel(otherwise=_answer)
        model.injector = self.injector
        store = self.world.store
        assert isinstance(store, CrashingStore)
        store.injector = self.injector
        channel = CrashingChannel(self.world.platform, ADA)
        channel.injector = self.injector
        survived = False
        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as process:

                async def watch() -> None:
                    await self.injector.crashed.wait()
                    process.cancel()

                group.start_soon(watch)
                try:
                    async with open_platform(
                        self.world,
                        model,
                        accounts={ADA: channel},
                        tools=ToolsetFixture(run=self._write),
                        account_policy=self.account_policy,
                        agents={ADA: Agent(ADA, history=HistorySettings(recent_messages=0))},
                    ) as fixture:
                        await act(fixture)
                        await fixture.settled()
                        survived = True
                except (DenizenError, ExceptionGroup):
                    if not self.injector.crashed.is_set():
                        raise
            group.cancel_scope.cancel()
        return survived

    async def _write(self, asked: ToolCall, scope: CallScope) -> ToolResult:
        await self.injector.tick()
        self.done.add(scope.options.idempotency_key)
        await self.injector.tick()
        return ToolResult("written")

    def answers(self) -> list[str]:
        """The account's posts that are there now, without spaces."""
        posts = [written.post for written in self.world.platform.posts.values()]
        return ["".join(post.text.split()) for post in posts if post.author.id == "bot-ada"]


def _answer(request: ModelRequest) -> ScriptedReply:
    said = " ".join(str(part) for message in request.messages for part in message.parts)
    if "use a tool" in said and "written" not in said:
        return ScriptedReply(calls=[call("write", q="this")])
    return ScriptedReply(LONG if "a long answer" in said else "Short.")


@dataclass
class SomethingSaid:
    """Whether the process lived long enough for anybody to say something."""

    act: Callable[[PlatformFixture], Awaitable[None]]
    done: bool = False

    async def __call__(self, fixture: PlatformFixture) -> None:
        self.done = True
        await self.act(fixture)


async def crash_everywhere(
    make: Callable[[], CrashScenario], act: Callable[[PlatformFixture], Awaitable[None]], *expected: list[str]
) -> None:
    """Runs the scenario once to count its operations, then crashes at each of them and runs again. The answers are
    among the expected ones; by default there is a single one, the same as without a crash.
    """
    baseline = make()
    assert await baseline.run_process(do_nothing)  # the rooms are read from the first start on
    assert await baseline.run_process(act)
    if not expected:
        assert len(baseline.answers()) == 1
        expected = (baseline.answers(),)
    assert baseline.answers() == expected[0]
    for at in range(1, baseline.injector.count + 1):
        scenario = make()
        assert await scenario.run_process(do_nothing)
        acted = SomethingSaid(act)
        await scenario.run_process(acted, at=at)
        assert await scenario.run_process(do_nothing if acted.done else act)
        assert scenario.answers() in expected, f"crashed at operation {at} of {baseline.injector.count}"
        assert len(scenario.done) == len(baseline.done), f"crashed at operation {at}"


async def do_nothing(fixture: PlatformFixture) -> None:
    pass
