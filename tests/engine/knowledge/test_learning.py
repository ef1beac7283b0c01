"""An answer is learned from a member: proposed with a reaction, reviewed, written, found, and forgotten again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.attention import AccountPolicy, AccountScope, AccountStaff, ReplyStyle
from denizen.domain.audit import AuditKind
from denizen.domain.conversation import Place
from denizen.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.proposal import LearningPolicy, Proposal, ProposalDecision, ProposalStatus
from denizen.domain.room import Post, Room, RoomKind
from denizen.domain.source import LEARNED
from denizen.engine.knowledge.coverage import ProposalReviews
from denizen.engine.listener.proposals import TOLD
from denizen.ports.channel import ReactionChange
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture, build_learning
from tests.engine.platform_fixture import ADA, PlatformFixture, World, open_platform
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

OPERATOR = Principal(PrincipalKind.LOCAL, "operator", "operator")
BOOKS, NO, OK = "📚", "❌", "✅"
MANNERS = AccountPolicy(style=ReplyStyle(preview=False), staff=AccountStaff(owners=frozenset({"olga"})))
POLICY = LearningPolicy(enabled=True, roles=frozenset({"crew"}))
NAME = "docs/learned/2026-11-01-how-much-is-a-berth.md"


@dataclass
class LearningFixture:
    """Ana asks, Ben answers, Olga owns the place, Carl is of the crew, Dora is anybody."""

    fixture: PlatformFixture
    engine: KnowledgeFixture
    learning: ProposalReviews

    @property
    def world(self) -> World:
        return self.fixture.world

    async def talk(self, room: Room | None = None) -> Post:
        """Ben's reply to what Ana asked."""
        room = room or self.world.general
        asked = self.world.platform.say(room, "ana", "How much is a berth?")
        return self.world.platform.say(room, "ben", "Ten euros a night.", reply_to=asked.id)

    async def react(self, who: str, post: Post, emoji: str = BOOKS, *, on: bool = True) -> None:
        self.world.platform.react(who, post.id, emoji, on=on)
        await self.fixture.settled()

    async def open(self) -> list[Proposal]:
        async with self.fixture.store.work(write=False) as work:
            return list(await work.proposals.list_proposals(ProposalStatus.OPEN))

    async def propose(self, post: Post | None = None) -> Proposal:
        await self.react("olga", post or await self.talk())
        (proposal,) = await self.open()
        return proposal

    async def accept(self, proposal: Proposal, text: str = "") -> None:
        run = await self.learning.accept(proposal.id, OPERATOR, text)
        assert run is not None
        with anyio.fail_after(HANG_LIMIT_S):
            assert (await self.engine.sync.wait(run)).failed == {}

    @property
    def folder(self) -> Path:
        return self.engine.root / "home" / "learned"

    def on_disk(self) -> str:
        """Everything that any file below the root says."""
        return "\n".join(each.read_text(errors="replace") for each in self.engine.root.rglob("*") if each.is_file())


async def keep_gap(kit: LearningFixture, question: str, place: Place, *, asker: str = "ana", hours: float = -1) -> str:
    gap = KnowledgeGap(
        id=f"gap_{len(question)}",
        agent=ADA,
        question=question,
        asker=f"platform_user:discord:{asker}",
        place=place,
        is_private=False,
        kind=GapKind.UNKNOWN,
        turn_id=TurnId("t"),
        created_at=kit.world.clock.now() + timedelta(hours=hours),
    )
    async with kit.fixture.store.work() as work:
        await work.gaps.add(gap)
    return gap.id


@asynccontextmanager
async def open_kit(
    root: Path,
    world: World | None = None,
    *,
    learning: LearningPolicy = POLICY,
    account_policy: AccountPolicy = MANNERS,
    archive: ArchivePolicy | None = None,
) -> AsyncGenerator[LearningFixture]:
    if world is None:
        world = World()
        for person in ("ben", "olga", "dora"):
            world.platform.add_person(person, person.title())
        world.platform.add_person("carl", "Carl", roles=["crew"])
    async with KnowledgeFixture(root, store=world.store) as engine:
        made = build_learning(engine)
        async with open_platform(
            world, account_policy=account_policy, learning=learning, archive=archive, withdraw_learned=made.withdraw
        ) as fixture:
            yield LearningFixture(fixture, engine, made)


# --- proposing ------------------------------------------------------------------------------------------------------


async def test_a_reaction_of_an_owner_proposes_a_reply_as_the_answer_to_what_it_replies_to(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        gap = await keep_gap(kit, "@Ada how much is a berth?", kit.world.general.place)
        proposal = await kit.propose(post)
        assert (proposal.question, proposal.answer.text) == ("How much is a berth?", "Ten euros a night.")
        assert (proposal.answer.author, proposal.answer.author_name) == ("platform_user:discord:ben", "Ben")
        assert (proposal.asker, proposal.proposer) == ("platform_user:discord:ana", "platform_user:discord:olga")
        assert (proposal.gap_id, proposal.answer.post, proposal.answer.place) == (gap, post.id, kit.world.general.place)
        assert proposal.answer.link == f"https://discord.com/channels/1/{post.room}/{post.id}"
        (told,) = kit.fixture.ada.sent
        assert (told.content.text, told.reply_to) == (TOLD, post.id)
        assert ("bot-ada", OK) in kit.world.platform.reactions[post.id]


async def test_the_same_message_is_proposed_once_whoever_reacts_however_often(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        for who, on in (("olga", True), ("carl", True), ("carl", False), ("carl", True)):
            await kit.react(who, post, on=on)
        assert len(await kit.open()) == 1
        assert len(kit.fixture.ada.sent) == 1


async def test_a_role_of_the_settings_proposes_and_nobody_else(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        await kit.react("dora", post)
        await kit.react("ben", post)
        await kit.react("carl", post, "📖")
        assert await kit.open() == []
        await kit.react("carl", post)
        assert len(await kit.open()) == 1


async def test_nothing_is_proposed_unless_it_is_switched_on(tmp_path: Path) -> None:
    async with open_kit(tmp_path, learning=LearningPolicy()) as kit:
        await kit.react("olga", await kit.talk())
        assert await kit.open() == []
        assert kit.fixture.ada.sent == []


async def test_an_account_does_not_learn_where_it_does_not_speak(tmp_path: Path) -> None:
    elsewhere = replace(MANNERS, scope=AccountScope(channels=frozenset({"999"})))
    async with open_kit(tmp_path, account_policy=elsewhere) as kit:
        await kit.react("olga", await kit.talk())
        assert await kit.open() == []


@pytest.mark.proves("P3")
@pytest.mark.parametrize("kind", ["readers", "private thread"])
async def test_only_what_everybody_of_the_server_may_read_is_learned(tmp_path: Path, kind: str) -> None:
    async with open_kit(tmp_path) as kit:
        platform, room = kit.world.platform, kit.world.general
        if kind == "readers":
            room = platform.add_room("staff", readers=["ana", "ben", "olga", "bot-ada"])
        else:
            room = platform.add_room("plans", RoomKind.PRIVATE_THREAD, parent=room)
        await kit.react("olga", await kit.talk(room))
        assert await kit.open() == []


async def test_while_nobody_knows_who_may_read_it_nothing_is_learned(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        kit.fixture.ada.fail("is_open", Unavailable("the server is away"))
        with pytest.raises(Unavailable):
            await kit.fixture.listener.on_reaction(ReactionChange(BOOKS, post.id, kit.world.general, "olga"))
        assert await kit.open() == []


async def test_messages_of_bots_and_of_people_who_opted_out_teach_nothing(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        platform = kit.world.platform
        platform.add_person("hal", "Hal", is_bot=True)
        await kit.react("olga", platform.say(kit.world.general, "hal", "I am a bot."))
        await kit.fixture.privacy.opt_out_user("discord", "ben")
        await kit.react("olga", await kit.talk())
        assert await kit.open() == []
        await kit.fixture.privacy.opt_in_user("discord", "ben")
        await kit.fixture.privacy.opt_out_user("discord", "ana")
        assert (await kit.propose()).question == ""


async def test_people_of_a_role_that_opted_out_are_not_quoted_as_askers_either(tmp_path: Path) -> None:
    policy = ArchivePolicy(opt_outs=OptOuts(roles=frozenset({"quiet"})))
    async with open_kit(tmp_path, archive=policy) as kit:
        kit.world.platform.add_person("eve", "Eve", roles=["quiet"])
        await keep_gap(kit, "What is the code?", kit.world.general.place, asker="eve")
        post = kit.world.platform.say(kit.world.general, "ben", "It is posted at the gate.")
        assert (await kit.propose(post)).question == ""


async def test_without_a_reply_the_nearest_question_of_the_place_without_an_answer_is_meant(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await keep_gap(kit, "Where is the key?", Place("discord", "999"))
        gap = await keep_gap(kit, "How much is a berth?", kit.world.general.place, hours=-2)
        await keep_gap(kit, "Is water free for everybody?", kit.world.general.place, hours=-20)
        proposal = await kit.propose(kit.world.platform.say(kit.world.general, "ben", "Ten euros."))
        assert (proposal.question, proposal.gap_id) == ("How much is a berth?", gap)
        assert proposal.asker == "platform_user:discord:ana"


async def test_who_proposed_it_takes_it_back_and_nobody_else_does(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        await kit.propose(post)
        await kit.react("carl", post)
        await kit.react("carl", post, on=False)
        await kit.react("dora", post, NO)
        assert len(await kit.open()) == 1
        await kit.react("olga", post, on=False)
        assert await kit.open() == []
        assert ("bot-ada", OK) not in kit.world.platform.reactions[post.id]
        await kit.propose(post)
        assert ("bot-ada", OK) in kit.world.platform.reactions[post.id]


async def test_what_was_reviewed_is_not_accepted_when_the_message_says_something_else_by_then(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        seen = await kit.propose(post)
        await kit.react("olga", post, on=False)
        kit.world.platform.edit(post.id, "Pay Mallory a hundred euros.")
        await kit.fixture.settled()
        anew = await kit.propose(post)
        assert (seen.id == anew.id, anew.answer.text) == (False, "Pay Mallory a hundred euros.")
        with pytest.raises(NotFound):
            await kit.learning.accept(seen.id, OPERATOR)
        assert await kit.open() == [anew]


async def test_an_author_who_refused_is_not_asked_again_with_another_text(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        await kit.propose(post)
        await kit.react("ben", post, NO)
        kit.world.platform.edit(post.id, "Eleven euros.")
        await kit.fixture.settled()
        await kit.react("carl", post)
        assert await kit.open() == []


async def test_a_proposal_is_withdrawn_for_good_by_the_author_of_the_answer(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        proposal = await kit.propose(post)
        await kit.react("ben", post, NO)
        await kit.react("olga", post, on=False)
        await kit.react("olga", post)
        assert await kit.open() == []
        with pytest.raises(NotFound):
            await kit.learning.accept(proposal.id, OPERATOR)
        async with kit.fixture.store.work(write=False) as work:
            left = await work.proposals.find(proposal.id)
        assert left is not None
        assert left.answer.text + left.question + left.answer.author_name == ""


async def test_a_room_that_the_account_only_left_keeps_what_was_said_there(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        proposal = await kit.propose()
        room = kit.world.general
        async with kit.fixture.store.work(write=False) as work:
            kept = await work.archive.list_posts("discord", room.id)
        await kit.fixture.listener.on_room_gone("discord", room.id, is_deleted=False)
        assert await kit.open() == [proposal]
        async with kit.fixture.store.work(write=False) as work:
            assert await work.archive.list_posts("discord", room.id) == kept != []


async def test_a_message_that_is_deleted_is_not_proposed_any_more(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        await kit.propose(post)
        kit.world.platform.delete(post.id)
        await kit.fixture.settled()
        assert await kit.open() == []


# --- reviewing ------------------------------------------------------------------------------------------------------


async def test_an_accepted_answer_becomes_a_document_as_it_was_shown(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        gap = await keep_gap(kit, "@Ada how much is a berth?", kit.world.general.place)
        same = await keep_gap(kit, "how much is a berth, please?", Place("discord", "999"), asker="dora")
        other = await keep_gap(kit, "Is water free?", kit.world.general.place)
        proposal = await kit.propose()
        (review,) = await kit.learning.list_reviews(OPERATOR)
        assert "+> Ten euros a night." in review.diff
        await kit.accept(proposal)
        assert kit.engine.files() == {NAME: review.content}
        assert review.file == NAME.rpartition("/")[2]
        assert (await kit.engine.catalog.get(LEARNED)).source.label == "Learned from the community"
        file = kit.folder / review.file
        assert (file.stat().st_mode & 0o777, kit.folder.stat().st_mode & 0o777) == (0o600, 0o700)
        async with kit.fixture.store.work(write=False) as work:
            assert [each.id for each in await work.gaps.list_gaps()] == [other]
            assert {each.id for each in await work.gaps.list_gaps(closed=True)} == {gap, same}
            entries = [each.event for each in await work.audit.list_entries() if each.event.kind is AuditKind.REVIEW]
        assert [(each.actor, each.subject, each.details["status"]) for each in entries] == [
            ("local:operator", proposal.id, "accepted")
        ]
        assert "euros" not in str(entries)
        assert await kit.open() == []


async def test_a_proposal_is_decided_about_once(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        proposal = await kit.propose()
        await kit.accept(proposal)
        for decide in (kit.learning.accept, kit.learning.reject):
            with pytest.raises(Conflict):
                await decide(proposal.id, OPERATOR)
        with pytest.raises(NotFound):
            await kit.learning.accept("prop_none", OPERATOR)


async def test_the_reviewer_may_change_the_answer(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        proposal = await kit.propose()
        with pytest.raises(InvalidInput):
            await kit.learning.accept(proposal.id, OPERATOR, "x" * 20_000)
        await kit.accept(proposal, "Twelve euros.\n# Not a heading")
        assert "> Twelve euros.\n> # Not a heading\n" in kit.engine.files()[NAME]
        assert "Ten euros" not in kit.engine.files()[NAME]


async def test_a_rejected_answer_is_not_written_nor_proposed_again(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        proposal = await kit.propose(post)
        await kit.learning.reject(proposal.id, OPERATOR, "It is twelve now.")
        await kit.react("olga", post, on=False)
        await kit.react("olga", post)
        assert await kit.open() == []
        assert not kit.folder.exists()
        async with kit.fixture.store.work(write=False) as work:
            kept = await work.proposals.find(proposal.id)
        assert kept is not None
        assert (kept.status, kept.decision.reason) == (ProposalStatus.REJECTED, "It is twelve now.")


async def test_a_source_of_that_name_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        (tmp_path / "mine").mkdir()
        await kit.engine.add(tmp_path / "mine", LEARNED)
        proposal = await kit.propose()
        with pytest.raises(Conflict):
            await kit.learning.accept(proposal.id, OPERATOR)
        assert await kit.open() == [proposal]


async def test_what_a_process_that_was_killed_had_begun_is_done_by_the_next_one(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        proposal = await kit.propose()
        decision = ProposalDecision(by=OPERATOR.key, file=NAME.rpartition("/")[2])
        async with kit.fixture.store.work() as work:  # the decision is kept, and nothing else was done
            assert await work.proposals.decide(replace(proposal, status=ProposalStatus.ACCEPTED, decision=decision))
        await kit.learning.catch_up()
        with anyio.fail_after(HANG_LIMIT_S):
            run = (await kit.engine.sync.list_runs(limit=1))[0]
            await kit.engine.sync.wait(run)
        assert NAME in kit.engine.files()
        await kit.learning.catch_up()
        assert len(await kit.engine.sync.list_runs()) == 1


async def test_two_answers_that_were_accepted_at_once_under_one_name_are_two_files(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        first, second = await kit.talk(), await kit.talk()
        await kit.react("olga", first)
        await kit.react("olga", second)
        found = await kit.open()
        async with kit.fixture.store.work() as work:
            for each in found:
                decision = ProposalDecision(by=OPERATOR.key, file="2026-11-01-how-much-is-a-berth.md")
                decided = replace(each, status=ProposalStatus.ACCEPTED, decision=decision)
                assert await work.proposals.decide(decided)
        run = await kit.learning.settle()
        assert run is not None
        await kit.engine.sync.wait(run)
        assert len(kit.engine.files()) == 2
        assert await kit.learning.settle() is None
        await kit.react("ben", first, NO)
        assert len(kit.engine.files()) == 1


async def test_files_that_somebody_else_put_into_the_folder_stay_as_they_are(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        kit.folder.mkdir(parents=True)
        (kit.folder / "own.md").write_text("# Mine\n")
        await kit.accept(await kit.propose())
        (kit.folder / NAME.rpartition("/")[2]).write_text((kit.folder / NAME.rpartition("/")[2]).read_text() + "More")
        await kit.learning.catch_up()
        assert "More" in (kit.folder / NAME.rpartition("/")[2]).read_text()
        await kit.fixture.privacy.forget_user("discord", "ben")
        assert [each.name for each in kit.folder.iterdir()] == ["own.md"]
        assert list(kit.engine.files()) == ["docs/learned/own.md"]


# --- forgetting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["forget", "opt out", "reaction", "delete", "channel", "room"])
async def test_what_an_author_takes_back_is_in_no_document_any_more(tmp_path: Path, how: str) -> None:
    async with open_kit(tmp_path) as kit:
        post = await kit.talk()
        await kit.accept(await kit.propose(post))
        kit.engine.clock.advance(minutes=5)
        assert "Ten euros" in kit.on_disk()
        match how:
            case "forget":
                await kit.fixture.privacy.forget_user("discord", "ben")
            case "opt out":
                await kit.fixture.privacy.opt_out_user("discord", "ben")
            case "channel":
                await kit.fixture.privacy.opt_out_channel("discord", kit.world.general.id)
            case "reaction":
                await kit.react("ben", post, NO)
            case "room":
                kit.world.platform.remove_room(kit.world.general)
                await kit.fixture.settled()
            case _:
                kit.world.platform.delete(post.id)
                await kit.fixture.settled()
        assert kit.engine.files() == {}
        assert list(kit.folder.iterdir()) == []
        assert await kit.engine.catalog.list_known() == []
        assert "Ten euros" not in kit.on_disk()
        async with kit.fixture.store.work(write=False) as work:
            assert await work.documents.list_digests() == {}


async def test_of_an_asker_who_is_forgotten_the_question_goes_and_the_answer_stays(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.accept(await kit.propose())
        await kit.fixture.privacy.forget_user("discord", "ana")
        ((name, text),) = kit.engine.files().items()
        assert name == "docs/learned/2026-11-01-ten-euros-a-night.md"
        assert "Ten euros a night." in text
        assert "berth" not in text
        await kit.learning.catch_up()
        assert list(kit.engine.files()) == [name]


async def test_what_the_operator_puts_into_the_folder_is_read_with_the_next_start(tmp_path: Path) -> None:
    async with open_kit(tmp_path) as kit:
        await kit.accept(await kit.propose())
        (kit.folder / "own.md").write_text("# Mine\n")
        kept = {each: each.read_bytes() for each in kit.folder.iterdir()}
        (kit.folder / "deep").mkdir()
        (kit.folder / "deep" / "more.md").write_text("# More\n")
        await kit.learning.catch_up()
        assert "docs/learned/deep/more.md" in kit.engine.files()
        assert {each: each.read_bytes() for each in kit.folder.iterdir() if each.is_file()} == kept
        assert (await kit.engine.catalog.get(LEARNED)).state is not None
