"""The store's promises about what an agent decided on a platform: claims, positions, follows, lists and exchanges."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from denizen.domain.ids import AgentName, TurnId
from denizen.ports.inbox import AllowedKind, MessageClaim
from denizen.ports.store import Store
from denizen.testing.store_contract_texts import ODD
from denizen.testing.store_records import AGENT, NOON, PLATFORM, at

OTHER = AgentName("scribe")


def claim_of(post: str, turn: str | None = "t1", refusal: str = "", agent: AgentName = AGENT) -> MessageClaim:
    return MessageClaim(agent, PLATFORM, post, None if turn is None else TurnId(turn), refusal)


@pytest.mark.anyio
class ReceptionContract:
    async def test_a_message_is_claimed_once_for_an_agent(self, store: Store) -> None:
        refused = claim_of("2", None, "rate")
        async with store.work() as work:
            assert await work.inbox.claim([claim_of("1"), refused], now=NOON) == [claim_of("1"), refused]
        async with store.work() as work:
            late, others, fresh = claim_of("1", "t2"), claim_of("1", "t3", agent=OTHER), claim_of("3", "t2")
            assert await work.inbox.claim([late, others, fresh, fresh], now=at(1)) == [others, fresh]
            assert await work.inbox.claim([claim_of("2")], now=at(1)) == []
            assert await work.inbox.claim([], now=at(1)) == []
        async with store.work(write=False) as work:
            found = await work.inbox.find_claims(AGENT, PLATFORM, {"1", "2", "3", "4"})
            assert found == {"1": claim_of("1"), "2": refused, "3": fresh}
            assert await work.inbox.find_claims(OTHER, PLATFORM, ["1", "2"]) == {"1": others}
            assert await work.inbox.find_claims(AGENT, "other", ["1"]) == {}
            assert await work.inbox.find_claims(AGENT, PLATFORM, []) == {}

    async def test_of_several_units_that_claim_the_same_messages_at_once_one_gets_each(self, store: Store) -> None:
        posts = [str(number) for number in range(90, 120)]
        taken: list[MessageClaim] = []

        async def claim(turn: str, order: Sequence[str]) -> None:
            async with store.work() as work:
                mine = await work.inbox.claim([claim_of(post, turn) for post in order], now=NOON)
            taken.extend(mine)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(8):
                    tasks.start_soon(claim, f"t{number}", posts if number % 2 else posts[::-1])
        assert sorted(each.post_id for each in taken) == sorted(posts)
        async with store.work(write=False) as work:
            found = await work.inbox.find_claims(AGENT, PLATFORM, posts)
        assert found == {each.post_id: each for each in taken}

    async def test_a_claim_of_a_unit_that_fails_is_free_again(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the claim is to be undone
            async with store.work() as work:
                await work.inbox.claim([claim_of("1")], now=NOON)
                raise ZeroDivisionError
        async with store.work() as work:
            assert await work.inbox.claim([claim_of("1", "t2")], now=NOON) == [claim_of("1", "t2")]

    async def test_ids_with_odd_characters_come_back(self, store: Store) -> None:
        odd = MessageClaim(AgentName(ODD), ODD, ODD, TurnId("t1"), "rate")
        async with store.work() as work:
            assert await work.inbox.claim([odd], now=NOON) == [odd]
            await work.inbox.put_cursors(odd.agent, ODD, {ODD: ODD})
            await work.inbox.follow(odd.agent, ODD, ODD, now=NOON)
        async with store.work(write=False) as work:
            assert await work.inbox.find_claims(odd.agent, ODD, [ODD, ""]) == {ODD: odd}
            assert await work.inbox.list_cursors(odd.agent, ODD) == {ODD: ODD}
            assert await work.inbox.list_followed(odd.agent, ODD) == {ODD}

    async def test_a_position_never_goes_back(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.inbox.list_cursors(AGENT, PLATFORM) == {}
            await work.inbox.put_cursors(AGENT, PLATFORM, {"10": "99", "20": "5"})
            await work.inbox.put_cursors(AGENT, PLATFORM, {})
            await work.inbox.put_cursors(AGENT, PLATFORM, {"10": "100", "30": "1"})
            await work.inbox.put_cursors(AGENT, PLATFORM, {"10": "98", "20": "6", "30": ""})
            await work.inbox.put_cursors(OTHER, PLATFORM, {"10": "7"})
            await work.inbox.put_cursors(AGENT, "other", {"10": "8"})
        async with store.work(write=False) as work:
            assert await work.inbox.list_cursors(AGENT, PLATFORM) == {"10": "100", "20": "6", "30": "1"}
            assert await work.inbox.list_cursors(OTHER, PLATFORM) == {"10": "7"}

    async def test_a_thread_is_followed_until_it_is_not(self, store: Store) -> None:
        async with store.work() as work:
            for thread in ("1", "2", "1"):
                await work.inbox.follow(AGENT, PLATFORM, thread, now=NOON)
            await work.inbox.follow(OTHER, PLATFORM, "3", now=NOON)
            await work.inbox.follow(AGENT, "other", "4", now=NOON)
            await work.inbox.unfollow(AGENT, PLATFORM, "2")
            await work.inbox.unfollow(AGENT, PLATFORM, "3")
        async with store.work(write=False) as work:
            assert await work.inbox.list_followed(AGENT, PLATFORM) == {"1"}
            assert await work.inbox.list_followed(OTHER, PLATFORM) == {"3"}

    async def test_users_and_roles_are_allowed_for_one_agent(self, store: Store) -> None:
        async with store.work() as work:
            for kind, key in ((AllowedKind.USER, "1"), (AllowedKind.USER, "2"), (AllowedKind.ROLE, "1")):
                await work.inbox.allow(AGENT, PLATFORM, kind, key, by="9", now=NOON)
            await work.inbox.allow(AGENT, PLATFORM, AllowedKind.USER, "1", by="8", now=at(1))
            await work.inbox.allow(OTHER, PLATFORM, AllowedKind.USER, "5", by="9", now=NOON)
            assert await work.inbox.disallow(AGENT, PLATFORM, AllowedKind.USER, "2")
            assert not await work.inbox.disallow(AGENT, PLATFORM, AllowedKind.USER, "2")
            assert not await work.inbox.disallow(AGENT, PLATFORM, AllowedKind.USER, "5")
        async with store.work(write=False) as work:
            assert await work.inbox.list_allowed(AGENT, PLATFORM, AllowedKind.USER) == {"1"}
            assert await work.inbox.list_allowed(AGENT, PLATFORM, AllowedKind.ROLE) == {"1"}
            assert await work.inbox.list_allowed(AGENT, "other", AllowedKind.USER) == frozenset()

    async def test_exchanges_are_counted_in_a_room_up_to_the_limit(self, store: Store) -> None:
        async with store.work() as work:
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 0
            took = [await work.inbox.take_bot_reply(PLATFORM, "10", limit=2) for _ in range(4)]
            assert took == [True, True, False, False]
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 2
            assert await work.inbox.take_bot_reply(PLATFORM, "10")
            assert await work.inbox.take_bot_reply(PLATFORM, "20", limit=2)
            assert not await work.inbox.take_bot_reply(PLATFORM, "30", limit=0)
        async with store.work(write=False) as work:
            counts = [await work.inbox.count_bot_replies(PLATFORM, room) for room in ("10", "20", "30")]
            assert counts == [3, 1, 0]
            assert await work.inbox.count_bot_replies("other", "10") == 0

    async def test_an_exchange_is_given_back_and_reset_and_never_below_0(self, store: Store) -> None:
        async with store.work() as work:
            await work.inbox.give_back_bot_reply(PLATFORM, "10")
            for _ in range(3):
                await work.inbox.take_bot_reply(PLATFORM, "10", limit=3)
            await work.inbox.give_back_bot_reply(PLATFORM, "10")
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 2
            assert await work.inbox.take_bot_reply(PLATFORM, "10", limit=3)
            await work.inbox.reset_bot_replies(PLATFORM, "10")
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 0
            await work.inbox.give_back_bot_reply(PLATFORM, "10")
            await work.inbox.reset_bot_replies(PLATFORM, "20")
            assert await work.inbox.take_bot_reply(PLATFORM, "10", limit=1)
            assert await work.inbox.count_bot_replies(PLATFORM, "10") == 1

    async def test_units_that_take_exchanges_at_once_stay_within_the_limit(self, store: Store) -> None:
        took: list[bool] = []

        async def take() -> None:
            async with store.work() as work:
                mine = await work.inbox.take_bot_reply(PLATFORM, "10", limit=3)
            took.append(mine)

        async with anyio.create_task_group() as tasks:
            for _ in range(12):
                tasks.start_soon(take)
        assert took.count(True) == 3

    async def test_a_unit_that_only_reads_refuses_to_decide(self, store: Store) -> None:
        async with store.work(write=False) as work:
            with pytest.raises(RuntimeError):
                await work.inbox.claim([claim_of("1")], now=NOON)
            with pytest.raises(RuntimeError):
                await work.archive.put([])
            with pytest.raises(RuntimeError):
                await work.outbox.add([])
        async with store.work(write=False) as work:
            assert await work.inbox.find_claims(AGENT, PLATFORM, ["1"]) == {}
