"""What calls write down for when they run again, and the book of warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from denizen.builtin_skills.attempts import KEPT
from denizen.builtin_skills.moderation import MAX_WARNINGS_PER_MEMBER, MemberWarning, WarningLog
from denizen.skill import ToolError
from tests.builtin_skills.moderation_fixture import open_moderation


def make_warning(member: str = "7", key: str = "") -> MemberWarning:
    return MemberWarning(number=0, member=member, by="8", at="2026-11-21T12:00+00:00", reason="spam", key=key)


def test_numbers_are_not_given_again_while_later_ones_are_there(tmp_path: Path) -> None:
    book = WarningLog(tmp_path / "new", "42")
    assert [book.add(make_warning()).number for _ in range(3)] == [1, 2, 3]
    assert book.remove(1)
    assert book.add(make_warning()).number == 4
    assert [each.number for each in book.find_warnings("7")] == [2, 3, 4]


def test_each_guild_has_its_own_warnings(tmp_path: Path) -> None:
    WarningLog(tmp_path, "42").add(make_warning())
    assert WarningLog(tmp_path, "43").find_warnings() == []
    for wrong in ("", "..", "../42", "a"):
        with pytest.raises(ToolError):
            WarningLog(tmp_path, wrong)


def test_the_same_call_warns_once(tmp_path: Path) -> None:
    book = WarningLog(tmp_path, "42")
    assert book.add(make_warning(key="call")) == book.add(make_warning(key="call"))
    assert len(book.find_warnings()) == 1


def test_nobody_collects_warnings_without_end(tmp_path: Path) -> None:
    book = WarningLog(tmp_path, "42")
    for number in range(MAX_WARNINGS_PER_MEMBER):
        book.add(make_warning(key=f"{number}"))
    with pytest.raises(ToolError, match="Remove some"):
        book.add(make_warning())
    book.add(make_warning(member="9"))


def test_damaged_warnings_are_not_overwritten(tmp_path: Path) -> None:
    book = WarningLog(tmp_path, "42")
    for text in ("[{", "[1]", '[{"number": 1, "who": 2}]', "{}x"):
        (tmp_path / "42.json").write_text(text)
        with pytest.raises(ToolError, match="damaged"):
            book.add(make_warning())
        assert (tmp_path / "42.json").read_text() == text


@pytest.mark.anyio
async def test_only_the_newest_tries_are_kept_and_none_of_calls_without_a_key(tmp_path: Path) -> None:
    async with open_moderation(tmp_path) as it:
        tries = tmp_path / "ada" / "moderation" / ".tries"
        await it.do(it.sim.ana, "kick_member", key="call", member=str(it.sim.ben.id))
        [first] = tries.iterdir()
        for number in range(KEPT + 5):
            (tries / f"{number:032}").write_text("x")
        await it.do(it.sim.ana, "kick_member", key="other", member=str(it.sim.ben.id))
        assert len(list(tries.iterdir())) == KEPT
        assert not first.exists()
