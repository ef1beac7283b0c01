"""Downloading from a hub that breaks off, refuses and lies."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from denizen.adapters.models.embedded.hub import download
from denizen.adapters.models.embedded.progress import ignore_progress
from denizen.adapters.models.embedded.weights import WeightsPlaces, load_weights
from denizen.domain.errors import NeedsAttention, Unavailable
from tests.adapters.models.embedded.hub_server import Hub, running_hub
from tests.adapters.models.embedded.samples import ProgressRecorder, sample_entry

pytestmark = pytest.mark.anyio

_CONTENT = bytes(range(256)) * 20_000
_ENTRY = sample_entry(_CONTENT)
_FILE = _ENTRY.file
_PATH = "/owner/sample/resolve/main/sample.gguf"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub(_CONTENT) as hub:
        yield hub


@pytest.fixture
def part(tmp_path: Path) -> anyio.Path:
    return anyio.Path(tmp_path / "sample.part")


async def test_the_file_of_the_revision_is_downloaded_through_redirects(hub: Hub, part: anyio.Path) -> None:
    reports = ProgressRecorder()

    sha256 = await download(_FILE, Path(part), hub.url, reports)

    assert await part.read_bytes() == _CONTENT
    assert sha256 == _FILE.sha256
    assert hub.asked == [(_PATH, None)]
    assert reports[-1].done_bytes == reports[-1].total_bytes == len(_CONTENT)


async def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(hub: Hub, part: anyio.Path) -> None:
    hub.cuts = [3_000_000]

    sha256 = await download(_FILE, Path(part), hub.url, ignore_progress)

    assert sha256 == _FILE.sha256
    assert await part.read_bytes() == _CONTENT
    assert [wanted for _, wanted in hub.asked] == [None, "bytes=3000000-"]


async def test_a_part_of_an_earlier_run_is_not_downloaded_again(hub: Hub, part: anyio.Path) -> None:
    await part.write_bytes(_CONTENT[:1234])

    sha256 = await download(_FILE, Path(part), hub.url, ignore_progress)

    assert sha256 == _FILE.sha256
    assert await part.read_bytes() == _CONTENT
    assert [wanted for _, wanted in hub.asked] == ["bytes=1234-"]


async def test_a_hub_without_ranges_starts_from_the_beginning(hub: Hub, part: anyio.Path) -> None:
    hub.ranges = False
    await part.write_bytes(_CONTENT[:1234])

    sha256 = await download(_FILE, Path(part), hub.url, ignore_progress)

    assert sha256 == _FILE.sha256
    assert await part.read_bytes() == _CONTENT


async def test_a_part_that_is_too_long_is_thrown_away(hub: Hub, part: anyio.Path) -> None:
    await part.write_bytes(_CONTENT + b"more")

    assert await download(_FILE, Path(part), hub.url, ignore_progress) == _FILE.sha256
    assert [wanted for _, wanted in hub.asked] == [None]


async def test_a_busy_hub_is_asked_again(hub: Hub, part: anyio.Path) -> None:
    hub.statuses = [503]

    assert await download(_FILE, Path(part), hub.url, ignore_progress) == _FILE.sha256
    assert len(hub.asked) == 2


async def test_a_refusal_is_final_and_says_why(hub: Hub, part: anyio.Path) -> None:
    hub.statuses = [404]

    with pytest.raises(Unavailable) as caught:
        await download(_FILE, Path(part), hub.url, ignore_progress)

    assert caught.value.code == "weights_download_failed"
    assert "404" in caught.value.why
    assert _PATH in caught.value.why
    assert len(hub.asked) == 1


async def test_bytes_without_end_are_cut_off(hub: Hub, part: anyio.Path) -> None:
    hub.content = _CONTENT + bytes(50_000_000)

    sha256 = await download(_FILE, Path(part), hub.url, ignore_progress)

    assert sha256 != _FILE.sha256
    assert (await part.stat()).st_size < len(_CONTENT) + 5_000_000


async def test_another_file_is_refused_and_removed(hub: Hub, tmp_path: Path) -> None:
    hub.content = _CONTENT[:-1] + b"?"

    with pytest.raises(NeedsAttention) as caught:
        await load_weights(_ENTRY, WeightsPlaces(home=tmp_path, hub_url=hub.url))

    assert caught.value.code == "weights_refused"
    assert hashlib.sha256(hub.content).hexdigest() in caught.value.why
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["sample.gguf.lock"]


async def test_the_hub_is_the_last_way_and_leaves_a_verified_copy(hub: Hub, tmp_path: Path) -> None:
    places = WeightsPlaces(home=tmp_path, hub_url=hub.url)

    first = await load_weights(_ENTRY, places)
    second = await load_weights(_ENTRY, places)

    assert first == second
    assert first.path.read_bytes() == _CONTENT
    assert len(hub.asked) == 1
