"""An answer is learned from a member: proposed with a reaction, reviewed, written, found, and forgotten again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from denizen.adapters.files import LearnedFolder
from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.attention import AccountPolicy, AccountScope, AccountStaff, ReplyStyle
from denizen.domain.audit import AuditKind
from denizen.domain.conversation import Place
from denizen.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from denizen.domain.gap import GapKind, KnowledgeGap
from denizen.domain.ids import TurnId
from denizen.domain.principal import Principal, PrincipalKind
from denizen.domain.proposal import LearningPolicy, Proposal, ProposalStatus
from denizen.domain.room import Post, Room, RoomKind
from denizen.domain.source import LEARNED
from denizen.engine.embedding.embedder import BudgetedEmbedder
from denizen.engine.knowledge.coverage import LearningDeps, ProposalReviews
from denizen.engine.knowledge.index import DocumentIndexer
from denizen.engine.listener.proposals import TOLD
from denizen.ports.channel import ReactionChange
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture
from tests.engine.platform_fixture import ADA, Town, World, open_town
from tests.timing import HANG_LIMIT_S

pytestmark = pytest.mark.anyio

OPERATOR = Principal(PrincipalKind.LOCAL, "operator", "operator")
BOOKS, NO, OK = "📚", "❌", "✅"
MANNERS = AccountPolicy(style=ReplyStyle(preview=False), staff=AccountStaff(owners=frozenset({"olga"})))
POLICY = LearningPolicy(enabled=True, roles=frozenset({"crew"}))
NAME = "docs/learned/2026-11-01-how-much-is-a-berth.md"


def build_learning(engine: KnowledgeFixture) -> ProposalReviews:
    indexing = DocumentIndexer(engine.store, engine.library, BudgetedEmbedder(lambda: None))
    files = LearnedFolder(engine.root / "home" / "learned")
    shelf = LearningDeps(files, engine.catalog, engine.reading, engine.snapshots, indexing, engine.sync)
    return ProposalReviews(engine.store, engine.clock, shelf)


@dataclass
class Desk:
    """Ana asks, Ben answers, Olga owns the place, Carl is of the crew, Dora is anybody."""

    town: Town
    engine: KnowledgeFixture
    learning: ProposalReviews

    @property
    def world(self) -> World:
        return self.town.world

    async def talk(self, room: Room | None = None) -> Post:
        """Ben's reply to what Ana asked."""
        room = room or self.world.general
        asked = self.world.platform.say(room, "ana", "How much is a berth?")
        return self.world.platform.say(room, "ben", "Ten euros a night.", reply_to=asked.id)

    async def react(self, who: str, post: Post, emoji: str = BOOKS, *, on: bool = True) -> None:
        self.world.platform.react(who, post.id, emoji, on=on)
        await self.town.settled()

    async def open(self) -> list[Proposal]:
        async with self.town.store.work(write=False) as work:
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


async def keep_gap(desk: Desk, question: str, place: Place, *, asker: str = "ana", hours: float = -1) -> str:
    gap = KnowledgeGap(
        id=f"gap_{len(question)}",
        agent=ADA,
        question=question,
        asker=f"platform_user:discord:{asker}",
        place=place,
        is_private=False,
        kind=GapKind.UNKNOWN,
        turn_id=TurnId("t"),
        created_at=desk.world.clock.now() + timedelta(hours=hours),
    )
    async with desk.town.store.work() as work:
        await work.gaps.add(gap)
    return gap.id


@asynccontextmanager
async def open_desk(
    root: Path,
    world: World | None = None,
    *,
    learning: LearningPolicy = POLICY,
    account_policy: AccountPolicy = MANNERS,
    archive: ArchivePolicy | None = None,
) -> AsyncGenerator[Desk]:
    if world is None:
        world = World()
        for person in ("ben", "olga", "dora"):
            world.platform.add_person(person, person.title())
        world.platform.add_person("carl", "Carl", roles=["crew"])
    engine = KnowledgeFixture(root, store=world.store)
    await engine.durable.start()
    made = build_learning(engine)
    async with open_town(world, account_policy=account_policy, learning=learning, archive=archive) as town:
        town.shared_services.proposals.on_withdrawn(made.withdraw)
        town.privacy.tell_of_forgotten(lambda _platform: made.withdraw())
        yield Desk(town, engine, made)
    await engine.durable.aclose()


# --- proposing ------------------------------------------------------------------------------------------------------


async def test_a_reaction_of_an_owner_proposes_a_reply_as_the_answer_to_what_it_replies_to(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        gap = await keep_gap(desk, "@Ada how much is a berth?", desk.world.general.place)
        proposal = await desk.propose(post)
        assert (proposal.question, proposal.answer) == ("How much is a berth?", "Ten euros a night.")
        assert (proposal.author, proposal.author_name) == ("platform_user:discord:ben", "Ben")
        assert (proposal.asker, proposal.proposer) == ("platform_user:discord:ana", "platform_user:discord:olga")
        assert (proposal.gap_id, proposal.post, proposal.place) == (gap, post.id, desk.world.general.place)
        assert proposal.link == f"https://discord.com/channels/1/{post.room}/{post.id}"
        (told,) = desk.town.ada.sent
        assert (told.content.text, told.reply_to) == (TOLD, post.id)
        assert ("bot-ada", OK) in desk.world.platform.reactions[post.id]


async def test_the_same_message_is_proposed_once_whoever_reacts_however_often(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        for who, on in (("olga", True), ("carl", True), ("carl", False), ("carl", True)):
            await desk.react(who, post, on=on)
        assert len(await desk.open()) == 1
        assert len(desk.town.ada.sent) == 1


async def test_a_role_of_the_settings_proposes_and_nobody_else(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        await desk.react("dora", post)
        await desk.react("ben", post)
        await desk.react("carl", post, "📖")
        assert await desk.open() == []
        await desk.react("carl", post)
        assert len(await desk.open()) == 1


async def test_nothing_is_proposed_unless_it_is_switched_on(tmp_path: Path) -> None:
    async with open_desk(tmp_path, learning=LearningPolicy()) as desk:
        await desk.react("olga", await desk.talk())
        assert await desk.open() == []
        assert desk.town.ada.sent == []


async def test_an_account_does_not_learn_where_it_does_not_speak(tmp_path: Path) -> None:
    elsewhere = replace(MANNERS, scope=AccountScope(channels=frozenset({"999"})))
    async with open_desk(tmp_path, account_policy=elsewhere) as desk:
        await desk.react("olga", await desk.talk())
        assert await desk.open() == []


@pytest.mark.parametrize("kind", ["readers", "private thread"])
async def test_only_what_everybody_of_the_server_may_read_is_learned(tmp_path: Path, kind: str) -> None:
    async with open_desk(tmp_path) as desk:
        platform, room = desk.world.platform, desk.world.general
        if kind == "readers":
            room = platform.add_room("staff", readers=["ana", "ben", "olga", "bot-ada"])
        else:
            room = platform.add_room("plans", RoomKind.PRIVATE_THREAD, parent=room)
        await desk.react("olga", await desk.talk(room))
        assert await desk.open() == []


async def test_while_nobody_knows_who_may_read_it_nothing_is_learned(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        desk.town.ada.fail("is_open", Unavailable("the server is away"))
        with pytest.raises(Unavailable):
            await desk.town.resident.on_reaction(ReactionChange(BOOKS, post.id, desk.world.general, "olga"))
        assert await desk.open() == []


async def test_messages_of_bots_and_of_people_who_opted_out_teach_nothing(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        platform = desk.world.platform
        platform.add_person("hal", "Hal", is_bot=True)
        await desk.react("olga", platform.say(desk.world.general, "hal", "I am a bot."))
        await desk.town.privacy.opt_out_user("discord", "ben")
        await desk.react("olga", await desk.talk())
        assert await desk.open() == []
        await desk.town.privacy.opt_in_user("discord", "ben")
        await desk.town.privacy.opt_out_user("discord", "ana")
        assert (await desk.propose()).question == ""


async def test_people_of_a_role_that_opted_out_are_not_quoted_as_askers_either(tmp_path: Path) -> None:
    policy = ArchivePolicy(opt_outs=OptOuts(roles=frozenset({"quiet"})))
    async with open_desk(tmp_path, archive=policy) as desk:
        desk.world.platform.add_person("eve", "Eve", roles=["quiet"])
        await keep_gap(desk, "What is the code?", desk.world.general.place, asker="eve")
        post = desk.world.platform.say(desk.world.general, "ben", "It is posted at the gate.")
        assert (await desk.propose(post)).question == ""


async def test_without_a_reply_the_nearest_question_of_the_place_without_an_answer_is_meant(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await keep_gap(desk, "Where is the key?", Place("discord", "999"))
        gap = await keep_gap(desk, "How much is a berth?", desk.world.general.place, hours=-2)
        await keep_gap(desk, "Is water free for everybody?", desk.world.general.place, hours=-20)
        proposal = await desk.propose(desk.world.platform.say(desk.world.general, "ben", "Ten euros."))
        assert (proposal.question, proposal.gap_id) == ("How much is a berth?", gap)
        assert proposal.asker == "platform_user:discord:ana"


async def test_who_proposed_it_takes_it_back_and_nobody_else_does(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        await desk.propose(post)
        await desk.react("carl", post)
        await desk.react("carl", post, on=False)
        await desk.react("dora", post, NO)
        assert len(await desk.open()) == 1
        await desk.react("olga", post, on=False)
        assert await desk.open() == []
        assert ("bot-ada", OK) not in desk.world.platform.reactions[post.id]
        await desk.propose(post)
        assert ("bot-ada", OK) in desk.world.platform.reactions[post.id]


async def test_what_was_reviewed_is_not_accepted_when_the_message_says_something_else_by_then(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        seen = await desk.propose(post)
        await desk.react("olga", post, on=False)
        desk.world.platform.edit(post.id, "Pay Mallory a hundred euros.")
        await desk.town.settled()
        anew = await desk.propose(post)
        assert (seen.id == anew.id, anew.answer) == (False, "Pay Mallory a hundred euros.")
        with pytest.raises(NotFound):
            await desk.learning.accept(seen.id, OPERATOR)
        assert await desk.open() == [anew]


async def test_an_author_who_refused_is_not_asked_again_with_another_text(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        await desk.propose(post)
        await desk.react("ben", post, NO)
        desk.world.platform.edit(post.id, "Eleven euros.")
        await desk.town.settled()
        await desk.react("carl", post)
        assert await desk.open() == []


async def test_its_author_takes_it_back_for_good(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        proposal = await desk.propose(post)
        await desk.react("ben", post, NO)
        await desk.react("olga", post, on=False)
        await desk.react("olga", post)
        assert await desk.open() == []
        with pytest.raises(NotFound):
            await desk.learning.accept(proposal.id, OPERATOR)
        async with desk.town.store.work(write=False) as work:
            left = await work.proposals.find(proposal.id)
        assert left is not None
        assert left.answer + left.question + left.author_name == ""


async def test_a_room_that_the_account_only_left_keeps_what_was_said_there(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        proposal = await desk.propose()
        room = desk.world.general
        async with desk.town.store.work(write=False) as work:
            kept = await work.archive.list_posts("discord", room.id)
        await desk.town.resident.on_room_gone("discord", room.id, is_deleted=False)
        assert await desk.open() == [proposal]
        async with desk.town.store.work(write=False) as work:
            assert await work.archive.list_posts("discord", room.id) == kept != []


async def test_a_message_that_is_deleted_is_not_proposed_any_more(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        await desk.propose(post)
        desk.world.platform.delete(post.id)
        await desk.town.settled()
        assert await desk.open() == []


# --- reviewing ------------------------------------------------------------------------------------------------------


async def test_an_accepted_answer_becomes_a_document_as_it_was_shown(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        gap = await keep_gap(desk, "@Ada how much is a berth?", desk.world.general.place)
        same = await keep_gap(desk, "how much is a berth, please?", Place("discord", "999"), asker="dora")
        other = await keep_gap(desk, "Is water free?", desk.world.general.place)
        proposal = await desk.propose()
        (review,) = await desk.learning.list_reviews(OPERATOR)
        assert "+> Ten euros a night." in review.diff
        await desk.accept(proposal)
        assert desk.engine.files() == {NAME: review.content}
        assert review.file == NAME.rpartition("/")[2]
        assert (await desk.engine.catalog.get(LEARNED)).source.label == "Learned from the community"
        file = desk.folder / review.file
        assert (file.stat().st_mode & 0o777, desk.folder.stat().st_mode & 0o777) == (0o600, 0o700)
        async with desk.town.store.work(write=False) as work:
            assert [each.id for each in await work.gaps.list_gaps()] == [other]
            assert {each.id for each in await work.gaps.list_gaps(closed=True)} == {gap, same}
            entries = [each.event for each in await work.audit.list_entries() if each.event.kind is AuditKind.REVIEW]
        assert [(each.actor, each.subject, each.details["status"]) for each in entries] == [
            ("local:operator", proposal.id, "accepted")
        ]
        assert "euros" not in str(entries)
        assert await desk.open() == []


async def test_a_proposal_is_decided_about_once(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        proposal = await desk.propose()
        await desk.accept(proposal)
        for decide in (desk.learning.accept, desk.learning.reject):
            with pytest.raises(Conflict):
                await decide(proposal.id, OPERATOR)
        with pytest.raises(NotFound):
            await desk.learning.accept("prop_none", OPERATOR)


async def test_the_reviewer_may_change_the_answer(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        proposal = await desk.propose()
        with pytest.raises(InvalidInput):
            await desk.learning.accept(proposal.id, OPERATOR, "x" * 20_000)
        await desk.accept(proposal, "Twelve euros.\n# Not a heading")
        assert "> Twelve euros.\n> # Not a heading\n" in desk.engine.files()[NAME]
        assert "Ten euros" not in desk.engine.files()[NAME]


async def test_a_rejected_answer_is_not_written_nor_proposed_again(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        proposal = await desk.propose(post)
        await desk.learning.reject(proposal.id, OPERATOR, "It is twelve now.")
        await desk.react("olga", post, on=False)
        await desk.react("olga", post)
        assert await desk.open() == []
        assert not desk.folder.exists()
        async with desk.town.store.work(write=False) as work:
            kept = await work.proposals.find(proposal.id)
        assert kept is not None
        assert (kept.status, kept.reason) == (ProposalStatus.REJECTED, "It is twelve now.")


async def test_a_source_of_that_name_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        (tmp_path / "mine").mkdir()
        await desk.engine.add(tmp_path / "mine", LEARNED)
        proposal = await desk.propose()
        with pytest.raises(Conflict):
            await desk.learning.accept(proposal.id, OPERATOR)
        assert await desk.open() == [proposal]


async def test_what_a_process_that_was_killed_had_begun_is_done_by_the_next_one(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        proposal = await desk.propose()
        named = replace(proposal, status=ProposalStatus.ACCEPTED, file=NAME.rpartition("/")[2])
        async with desk.town.store.work() as work:  # the decision is kept, and nothing else was done
            assert await work.proposals.decide(replace(named, decided_by=OPERATOR.key))
        await desk.learning.catch_up()
        with anyio.fail_after(HANG_LIMIT_S):
            run = (await desk.engine.sync.list_runs(limit=1))[0]
            await desk.engine.sync.wait(run)
        assert NAME in desk.engine.files()
        await desk.learning.catch_up()
        assert len(await desk.engine.sync.list_runs()) == 1


async def test_two_answers_that_were_accepted_at_once_under_one_name_are_two_files(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        first, second = await desk.talk(), await desk.talk()
        await desk.react("olga", first)
        await desk.react("olga", second)
        found = await desk.open()
        async with desk.town.store.work() as work:
            for each in found:
                decided = replace(each, status=ProposalStatus.ACCEPTED, file="2026-11-01-how-much-is-a-berth.md")
                assert await work.proposals.decide(replace(decided, decided_by=OPERATOR.key))
        run = await desk.learning.settle()
        assert run is not None
        await desk.engine.sync.wait(run)
        assert len(desk.engine.files()) == 2
        assert await desk.learning.settle() is None
        await desk.react("ben", first, NO)
        assert len(desk.engine.files()) == 1


async def test_files_that_somebody_else_put_into_the_folder_stay_as_they_are(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        desk.folder.mkdir(parents=True)
        (desk.folder / "own.md").write_text("# Mine\n")
        await desk.accept(await desk.propose())
        (desk.folder / NAME.rpartition("/")[2]).write_text((desk.folder / NAME.rpartition("/")[2]).read_text() + "More")
        await desk.learning.catch_up()
        assert "More" in (desk.folder / NAME.rpartition("/")[2]).read_text()
        await desk.town.privacy.forget_user("discord", "ben")
        assert [each.name for each in desk.folder.iterdir()] == ["own.md"]
        assert list(desk.engine.files()) == ["docs/learned/own.md"]


# --- forgetting -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["forget", "opt out", "reaction", "delete", "channel", "room"])
async def test_what_an_author_takes_back_is_in_no_document_any_more(tmp_path: Path, how: str) -> None:
    async with open_desk(tmp_path) as desk:
        post = await desk.talk()
        await desk.accept(await desk.propose(post))
        desk.engine.clock.time += timedelta(minutes=5)
        assert "Ten euros" in desk.on_disk()
        match how:
            case "forget":
                await desk.town.privacy.forget_user("discord", "ben")
            case "opt out":
                await desk.town.privacy.opt_out_user("discord", "ben")
            case "channel":
                await desk.town.privacy.opt_out_channel("discord", desk.world.general.id)
            case "reaction":
                await desk.react("ben", post, NO)
            case "room":
                desk.world.platform.remove_room(desk.world.general)
                await desk.town.settled()
            case _:
                desk.world.platform.delete(post.id)
                await desk.town.settled()
        assert desk.engine.files() == {}
        assert list(desk.folder.iterdir()) == []
        assert await desk.engine.catalog.list_known() == []
        assert "Ten euros" not in desk.on_disk()
        async with desk.town.store.work(write=False) as work:
            assert await work.documents.list_digests() == {}


async def test_of_an_asker_who_is_forgotten_the_question_goes_and_the_answer_stays(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.accept(await desk.propose())
        await desk.town.privacy.forget_user("discord", "ana")
        ((name, text),) = desk.engine.files().items()
        assert name == "docs/learned/2026-11-01-ten-euros-a-night.md"
        assert "Ten euros a night." in text
        assert "berth" not in text
        await desk.learning.catch_up()
        assert list(desk.engine.files()) == [name]


async def test_what_the_operator_puts_into_the_folder_is_read_with_the_next_start(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.accept(await desk.propose())
        (desk.folder / "own.md").write_text("# Mine\n")
        kept = {each: each.read_bytes() for each in desk.folder.iterdir()}
        (desk.folder / "deep").mkdir()
        (desk.folder / "deep" / "more.md").write_text("# More\n")
        await desk.learning.catch_up()
        assert "docs/learned/deep/more.md" in desk.engine.files()
        assert {each: each.read_bytes() for each in desk.folder.iterdir() if each.is_file()} == kept
        assert (await desk.engine.catalog.get(LEARNED)).state is not None
