"""Channels of YouTube, read from a server that answers as YouTube does."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from denizen.adapters.fetch import WebFetcher
from denizen.adapters.youtube import YoutubeReader
from denizen.domain.errors import DenizenError, LimitExceeded, NeedsAttention, NotFound, Unavailable
from denizen.domain.source import Source, SourceKind
from denizen.domain.video import VideoAccess
from denizen.ports.source import ReadingProgress
from tests.clock import ManualClock
from tests.timing import HANG_LIMIT_S
from tests.youtube import CHANNEL, HANDLE, KEY, YouTube, open_youtube

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass
class ReaderFixture:
    """A reader of a channel. `access` may be taken away."""

    youtube: YouTube
    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    told: list[ReadingProgress] = field(default_factory=list[ReadingProgress])

    def __post_init__(self) -> None:
        self.access: VideoAccess | None = VideoAccess(KEY, self.youtube.api_url, self.youtube.url)
        self.source = Source(
            id="talks",
            kind=SourceKind.YOUTUBE,
            location=f"https://www.youtube.com/{HANDLE}",
            created_at=NOW,
            updated_at=NOW,
        )
        host = f"127.0.0.1:{self.youtube.port}"
        self.reader = YoutubeReader(
            lambda: self.access,
            lambda _: WebFetcher(allow_private=[host], trusted=[host], backoff_s=(0, 0)),
            self.folder,
            self.clock,
        )

    async def read(self) -> dict[str, str]:
        """The documents by their paths, in their order."""
        with anyio.fail_after(HANG_LIMIT_S):
            async with self.reader.open(self.source, self.told.append) as tree:
                found = await to_thread.run_sync(lambda: {file.path: file.read().decode() for file in tree.files})
                assert tree.count == len(found)
                self.revision = tree.revision
        return found


@pytest.fixture
def fixture(tmp_path: Path) -> Generator[ReaderFixture]:
    with open_youtube() as youtube:
        yield ReaderFixture(youtube, tmp_path / "transcripts")


@pytest.mark.proves("S27")
async def test_each_video_becomes_a_document_with_front_matter_and_an_index_lists_them_newest_first(
    fixture: ReaderFixture,
) -> None:
    fixture.youtube.add("old", 'Ropes & knots: the 1st "lesson"', "Take a rope.", "It's <b>long</b> & wet.", "Pull.")
    fixture.youtube.add("new", "Ähem! Über/Unter", "Hallo.", duration="PT1H2M3S")
    found = await fixture.read()
    assert list(found) == ["new________-ähem-über-unter.md", "old________-ropes-knots-the-1st-lesson.md", "index.md"]
    url = "https://www.youtube.com/watch?v=old________"
    assert found["old________-ropes-knots-the-1st-lesson.md"] == (
        '---\ntitle: "Ropes & knots: the 1st \\"lesson\\""\nvideo_id: "old________"\n'
        f'url: "{url}"\npublished: "2026-01-01"\nduration: "2:05"\nchannel: "Harbour talks"\nlanguage: "en"\n---\n\n'
        '# Ropes & knots: the 1st "lesson"\n\n'
        f"[0:00]({url}&t=0s) Take a rope. It's long & wet.\n\n[1:30]({url}&t=90s) Pull.\n"
    )
    assert found["index.md"] == (
        '---\ntitle: "Harbour talks"\nvideos: 2\nwithout_transcript: 0\n---\n\n# Harbour talks\n\n'
        "2 videos, newest first.\n\n- 2026-01-02 [Ähem! Über/Unter](new________-ähem-über-unter.md) (1:02:03)\n"
        '- 2026-01-01 [Ropes & knots: the 1st "lesson"](old________-ropes-knots-the-1st-lesson.md) (2:05)\n'
    )
    assert [told.stage for told in fixture.told] == ["listing videos", "fetching transcripts", "fetching transcripts"]
    assert (fixture.told[-1].done, fixture.told[-1].total) == (1, 2)


@pytest.mark.proves("S27")
async def test_a_channel_is_listed_in_pages_of_50_up_to_its_maximum(fixture: ReaderFixture) -> None:
    for number in range(120):
        fixture.youtube.add(f"v{number}", f"Number {number}", "Words.", is_private=number % 60 == 5)
    fixture.source = replace(fixture.source, max_videos=70)
    found = await fixture.read()
    pages = [token for what, token in fixture.youtube.asked if what == "playlistItems"]
    assert pages == ["", "50"]
    assert len(found) == 71
    assert next(iter(found)) == "v119_______-number-119.md"
    assert not any("-5.md" in name or "-65.md" in name for name in found)
    assert [len(ids.split(",")) for what, ids in fixture.youtube.asked if what == "videos"] == [50, 20]


@pytest.mark.proves("S27")
async def test_the_slug_of_a_file_has_at_most_50_characters_and_no_title_leads_elsewhere(
    fixture: ReaderFixture,
) -> None:
    fixture.youtube.add("a", "x" * 80, "Words.")
    fixture.youtube.add("b", "../../etc/passwd\n---\ntitle: forged\r# [x](y)", "Words.\n# No heading")
    fixture.youtube.add("c", "🙈", "Words.")
    found = await fixture.read()
    assert list(found) == [
        "c__________-untitled.md",
        "b__________-etc-passwd-title-forged-x-y.md",
        f"a__________-{'x' * 50}.md",
        "index.md",
    ]
    hostile = found["b__________-etc-passwd-title-forged-x-y.md"]
    assert hostile.startswith('---\ntitle: "../../etc/passwd --- title: forged # [x](y)"\nvideo_id:')
    assert "\n# No heading" not in hostile


async def test_a_channel_is_found_by_handle_id_and_user_name(fixture: ReaderFixture) -> None:
    fixture.youtube.add("a", "One", "Words.")
    for path in (HANDLE, f"channel/{CHANNEL}", "user/harb"):
        fixture.source = replace(fixture.source, location=f"https://www.youtube.com/{path}")
        assert len(await fixture.read()) == 2
    fixture.source = replace(fixture.source, location="https://www.youtube.com/@nobody")
    with pytest.raises(NotFound) as refused:
        await fixture.read()
    assert refused.value.code == "source_missing"


async def test_what_was_fetched_is_not_fetched_again_and_only_new_videos_are_asked_for(fixture: ReaderFixture) -> None:
    fixture.youtube.add("a", "One", "Words.")
    await fixture.read()
    assert await fixture.reader.look(fixture.source) == fixture.revision
    fixture.youtube.add("b", "Two", "More words.")
    assert await fixture.reader.look(fixture.source) != fixture.revision
    await fixture.read()
    fixture.youtube.find("a__________").title = "One, renamed"
    found = await fixture.read()
    assert fixture.youtube.fetched() == ["a", "b"]
    assert "a__________-one-renamed.md" in found
    await fixture.reader.forget(["talks"])
    await fixture.read()
    assert fixture.youtube.fetched() == ["a", "b", "b", "a"]


@pytest.mark.proves("SW7")
async def test_a_video_that_leaves_the_list_leaves_nothing_behind(fixture: ReaderFixture) -> None:
    fixture.youtube.add("a", "One", "Words.")
    fixture.youtube.add("b", "Two", "Words.")
    await fixture.read()
    fixture.youtube.films.pop()
    assert sorted(await fixture.read()) == ["b__________-two.md", "index.md"]
    assert [path.name for path in (fixture.folder / "talks").iterdir()] == ["b__________.json"]


@pytest.mark.proves("S27")
async def test_videos_without_transcript_are_counted_and_listed_and_asked_for_again_on_another_day(
    fixture: ReaderFixture,
) -> None:
    fixture.youtube.add("spoken", "Spoken", "Words.")
    fixture.youtube.add("silent", "Silent")
    fixture.youtube.add("gone", "Gone", "Words.", state=("ERROR", "This video is unavailable"))
    fixture.youtube.add(
        "adult", "Adult", "W.", state=("LOGIN_REQUIRED", "This video may be inappropriate for some users.")
    )
    fixture.youtube.add("empty", "Empty", " ")
    found = await fixture.read()
    assert len(found) == 2
    assert "videos: 5\nwithout_transcript: 4\n" in found["index.md"]
    assert found["index.md"].endswith(
        "## Without a transcript: 4\n\n"
        "- 2026-01-05 [Empty](https://www.youtube.com/watch?v=empty______): its transcript is empty\n"
        "- 2026-01-04 [Adult](https://www.youtube.com/watch?v=adult______): it is for adults\n"
        "- 2026-01-03 [Gone](https://www.youtube.com/watch?v=gone_______): it is not available\n"
        "- 2026-01-02 [Silent](https://www.youtube.com/watch?v=silent_____): it has no transcript\n"
    )
    assert await fixture.reader.look(fixture.source) == fixture.revision
    await fixture.read()
    assert len(fixture.youtube.fetched()) == 5
    fixture.clock.advance(days=1)
    fixture.youtube.find("silent_____").lines["en"] = [(0.0, "Late words.")]
    assert await fixture.reader.look(fixture.source) != fixture.revision
    assert "silent_____-silent.md" in await fixture.read()
    assert sorted(fixture.youtube.fetched()[5:]) == ["adult", "empty", "gone", "silent"]


async def test_a_written_transcript_in_a_wanted_language_comes_before_any_other(fixture: ReaderFixture) -> None:
    words = {code: [(0.0, f"In {code}.")] for code in ("fr", "de", "en")}
    fixture.youtube.add("a", "One", lines=words, recognised=frozenset({"de"}))
    fixture.youtube.add("b", "Two", lines={"fr": words["fr"]}, recognised=frozenset({"fr"}))
    assert fixture.access is not None
    fixture.access = replace(fixture.access, languages=("de", "en"))
    found = await fixture.read()
    assert "In de." in found["a__________-one.md"] and 'language: "de"' in found["a__________-one.md"]
    assert "recognised by a machine" in found["b__________-two.md"] and "In fr." in found["b__________-two.md"]
    fixture.access = replace(fixture.access, languages=("en",))
    assert "In en." in (await fixture.read())["a__________-one.md"]


@pytest.mark.proves("S25-limits")
async def test_without_a_key_nothing_is_asked_and_the_remedy_is_told(fixture: ReaderFixture) -> None:
    fixture.access = None
    for ask in (fixture.read, lambda: fixture.reader.look(fixture.source)):
        with pytest.raises(NeedsAttention) as refused:
            await ask()
        assert (refused.value.code, "knowledge.youtube.api_key" in refused.value.fix) == ("youtube_key_missing", True)
    assert fixture.youtube.asked == []


@pytest.mark.parametrize(
    ("what", "status", "reason", "family", "code"),
    [
        ("playlistItems", 403, "quotaExceeded", LimitExceeded, "youtube_quota"),
        ("channels", 429, "rateLimitExceeded", LimitExceeded, "youtube_quota"),
        ("channels", 403, "accessNotConfigured", NeedsAttention, "youtube_key_refused"),
        ("channels", 400, "keyInvalid", NeedsAttention, "youtube_key_refused"),
        ("channels", 400, "badRequest", NeedsAttention, "youtube_refused"),
        ("playlistItems", 404, "playlistNotFound", NotFound, "source_empty"),
        ("videos", 503, "backendError", Unavailable, "source_unavailable"),
        ("watch", 429, "", LimitExceeded, "youtube_blocked"),
        ("watch", 500, "", Unavailable, "source_unavailable"),
    ],
)
async def test_what_youtube_refuses_says_what_to_do(
    fixture: ReaderFixture, what: str, status: int, reason: str, family: type[DenizenError], code: str
) -> None:
    fixture.youtube.add("a", "One", "Words.")
    fixture.youtube.failures[what] = (status, reason)
    with pytest.raises(family) as refused:
        await fixture.read()
    assert refused.value.code == code
    assert KEY not in refused.value.explain()


async def test_a_key_that_is_not_known_is_refused_and_never_repeated(fixture: ReaderFixture) -> None:
    assert fixture.access is not None
    fixture.access = replace(fixture.access, api_key="AIza-wrong")
    with pytest.raises(NeedsAttention) as refused:
        await fixture.read()
    assert refused.value.code == "youtube_key_refused"
    assert "AIza" not in refused.value.explain() + repr(fixture.access)


async def test_transcripts_that_were_fetched_before_youtube_blocks_are_there_the_next_time(
    fixture: ReaderFixture,
) -> None:
    fixture.youtube.add("a", "One", "Words.")
    fixture.youtube.add("b", "Two", "W.", state=("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot"))
    fixture.youtube.add("c", "Three", "Words.")
    with pytest.raises(LimitExceeded):
        await fixture.read()
    fixture.youtube.find("b__________").state = ("OK", "")
    assert len(await fixture.read()) == 4
    assert fixture.youtube.fetched() == ["c", "b", "b", "a"]


async def test_a_channel_without_videos_is_told_to_have_none(fixture: ReaderFixture) -> None:
    with pytest.raises(NotFound) as refused:
        await fixture.read()
    assert refused.value.code == "source_empty"


async def test_transcripts_are_asked_for_nowhere_else(fixture: ReaderFixture) -> None:
    fixture.youtube.elsewhere = "http://169.254.169.254/latest?"
    fixture.youtube.add("a", "One", "Words.")
    with pytest.raises(Unavailable) as refused:
        await fixture.read()
    assert refused.value.why == "InvalidURL"
