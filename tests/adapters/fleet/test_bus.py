"""Messages between processes of a fleet, on a real Postgres."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import anyio
import psycopg
import pytest
from anyio import to_thread
from cryptography.fernet import Fernet

from denizen.adapters.fleet.bus import CHANNEL, PART_BYTES, FleetBus
from denizen.domain.errors import DenizenError, NotAllowed, Unavailable
from denizen.domain.json import Json, JsonObject
from tests.timing import HANG_LIMIT_S, poll

pytest_plugins = ["tests.postgres"]
pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("postgres")]

KEY = Fernet.generate_key().decode()

Join = Callable[[str], AbstractAsyncContextManager[FleetBus]]


@pytest.fixture
def join(postgres_url: str) -> Join:
    """Opens a bus of that name, which hears when the block begins."""

    @asynccontextmanager
    async def open_(name: str) -> AsyncGenerator[FleetBus]:
        bus = FleetBus(postgres_url, name, KEY)
        async with anyio.create_task_group() as group:
            group.start_soon(bus.run)
            with anyio.fail_after(HANG_LIMIT_S):
                await bus.connected.wait()
            yield bus
            group.cancel_scope.cancel()

    return open_


async def test_a_message_reaches_all_others_or_one_in_order_and_whole(join: Join) -> None:
    heard: dict[str, list[Json]] = {"b": [], "c": []}
    long = "ü" * PART_BYTES
    async with join("a") as a, join("b") as b, join("c") as c:
        for bus in (a, b, c):
            bus.hear("say", lambda sender, body, bus=bus: heard.setdefault(bus.node, []).append([sender, body["n"]]))
        a.send("say", {"n": 1})
        a.send("say", {"n": long})
        a.send("say", {"n": 3}, to="c")
        a.send("unheard", {"n": 4})

        async def is_heard() -> bool:
            return len(heard["c"]) == 3 and len(heard["b"]) == 2

        await poll(is_heard)
    assert heard == {"b": [["a", 1], ["a", long]], "c": [["a", 1], ["a", long], ["a", 3]]}


async def test_a_call_is_answered_with_a_value_or_an_error(join: Join, caplog: pytest.LogCaptureFixture) -> None:
    async def double(body: JsonObject) -> Json:
        return [body["n"], body["n"]]

    async def refuse(_body: JsonObject) -> Json:
        raise NotAllowed("No.", code="no", fix="Ask.")

    async def break_(_body: JsonObject) -> Json:
        raise ValueError("of nobody's business")

    async with join("a") as a, join("b") as b:
        b.answer("double", double)
        b.answer("refuse", refuse)
        b.answer("break", break_)
        assert await a.request("b", "double", {"n": "x"}) == ["x", "x"]
        with pytest.raises(NotAllowed, match="No") as told:
            await a.request("b", "refuse", {})
        assert (told.value.code, told.value.fix) == ("no", "Ask.")
        with pytest.raises(DenizenError, match="went wrong") as broken:
            await a.request("b", "break", {})
        assert "business" not in broken.value.explain()
        with pytest.raises(Unavailable, match="does not know"):
            await a.request("b", "other", {})
        with pytest.raises(Unavailable, match="nobody does not answer"):
            await a.request("nobody", "double", {}, timeout_s=0.05)
    assert "of nobody's business" in caplog.text


async def test_what_is_asked_again_with_its_key_is_done_once(join: Join) -> None:
    begun, may_end, done = anyio.Event(), anyio.Event(), list[Json]()

    async def post(body: JsonObject) -> Json:
        begun.set()
        await may_end.wait()
        done.append(body["n"])
        return f"post {len(done)}"

    async with join("a") as a, join("b") as b, join("c") as c:
        b.answer("post", post)
        answers: list[Json] = []

        async def ask(bus: FleetBus) -> None:
            answers.append(await bus.request("b", "post", {"n": 1}, key="k"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask, a)
            await begun.wait()
            group.start_soon(ask, c)
            may_end.set()
        await ask(a)
        assert answers == ["post 1"] * 3
        assert await a.request("b", "post", {"n": 2}, key="other") == "post 2"
    assert done == [1, 2]


async def test_look_ups_do_not_push_out_what_was_done_with_a_key(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("denizen.adapters.fleet.bus.KEPT_ANSWERS", 2)
    done = list[Json]()

    async def post(body: JsonObject) -> Json:
        done.append(body["n"])
        return len(done)

    async def look_up(_body: JsonObject) -> Json:
        return "found"

    async with join("a") as a, join("b") as b:
        b.answer("post", post)
        b.answer("look_up", look_up)
        assert await a.request("b", "post", {"n": 1}, key="k") == 1
        for _ in range(3):
            assert await a.request("b", "look_up", {}) == "found"
        assert await a.request("b", "post", {"n": 1}, key="k") == 1
    assert done == [1]


async def test_a_call_that_failed_is_done_when_it_is_asked_again(join: Join) -> None:
    tries: list[Json] = []

    async def post(_body: JsonObject) -> Json:
        tries.append(1)
        if len(tries) == 1:
            raise Unavailable("Not now.", code="busy")
        return "done"

    async with join("a") as a, join("b") as b:
        b.answer("post", post)
        with pytest.raises(Unavailable, match="Not now"):
            await a.request("b", "post", {}, key="k")
        assert await a.request("b", "post", {}, key="k") == "done"


async def test_a_call_that_was_missed_is_sent_again(
    join: Join, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("denizen.adapters.fleet.bus.ASK_AGAIN_S", 0.05)

    async def greet(_body: JsonObject) -> Json:
        return "hello"

    answers: list[Json] = []
    async with join("a") as a, anyio.create_task_group() as group:

        async def ask() -> None:
            answers.append(await a.request("b", "greet", {}, timeout_s=HANG_LIMIT_S))

        group.start_soon(ask)
        with psycopg.connect(postgres_url, autocommit=True) as other:  # it is sent before b listens
            other.execute(f"LISTEN {CHANNEL}")
            await to_thread.run_sync(partial(list, other.notifies(timeout=HANG_LIMIT_S, stop_after=1)))
        b = FleetBus(postgres_url, "b", KEY)
        b.answer("greet", greet)
        group.start_soon(b.run)

        async def is_answered() -> bool:
            return bool(answers)

        await poll(is_answered)
        group.cancel_scope.cancel()
    assert answers == ["hello"]


async def test_what_nobody_waits_for_any_more_is_given_up_and_may_have_been_done(join: Join) -> None:
    given_up = anyio.Event()

    async def post(_body: JsonObject) -> Json:
        try:
            await anyio.sleep_forever()
        finally:
            given_up.set()

    async with join("a") as a, join("b") as b:
        b.answer("post", post)
        with pytest.raises(Unavailable, match="does not answer") as told:
            await a.request("b", "post", {}, key="k", timeout_s=0.05)
        assert "Look whether it was done" in told.value.fix
        with anyio.fail_after(HANG_LIMIT_S):
            await given_up.wait()


def seal(key: str, **message: object) -> str:
    return Fernet(key).encrypt(json.dumps({"from": "b", "to": "*", "topic": "say", **message}).encode()).decode()


async def test_only_whole_messages_of_this_fleet_are_heard_each_once(join: Join, postgres_url: str) -> None:
    heard: list[Json] = []
    forged = seal(Fernet.generate_key().decode(), body={"n": 1})
    real, last = seal(KEY, body={"n": 5}), seal(KEY, body={"n": 6})
    async with join("a") as a:
        a.hear("say", lambda _sender, body: heard.append(body["n"]))
        with psycopg.connect(postgres_url, autocommit=True) as other:
            for text in ("", "x", "k1 1 2\nx", f"k2 0 1\n{forged}", 'k3 0 1\n{"from": "b"}', f"k4 x 1\n{real}"):
                other.execute("SELECT pg_notify(%s, %s)", [CHANNEL, text])
            for key in ("k5", "k6"):  # somebody who listens sends it once more
                other.execute("SELECT pg_notify(%s, %s)", [CHANNEL, f"{key} 0 1\n{real}"])
            other.execute("SELECT pg_notify(%s, %s)", [CHANNEL, f"k7 0 1\n{last}"])

        async def is_heard() -> bool:
            return 6 in heard

        await poll(is_heard)
    assert heard == [5, 6]


async def test_nobody_who_only_listens_reads_a_message(join: Join, postgres_url: str) -> None:
    async with join("a") as a:
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(f"LISTEN {CHANNEL}")
            a.send("say", {"n": "the door code"})
            listen = partial(list, other.notifies(timeout=HANG_LIMIT_S, stop_after=1))
            [told] = [each.payload for each in await to_thread.run_sync(listen)]
    assert "door" not in told
    assert "say" not in told.partition("\n")[0]


async def test_it_hears_again_when_the_database_is_back(join: Join, postgres_url: str) -> None:
    heard: list[Json] = []
    async with join("a") as a, join("b") as b:
        b.hear("say", lambda _sender, body: heard.append(body["n"]))
        with psycopg.connect(postgres_url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'denizen-fleet'"
            )

        async def is_heard() -> bool:
            a.send("say", {"n": 1})
            return bool(heard)

        await poll(is_heard)
