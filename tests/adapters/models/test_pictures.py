"""Pictures in answers, and reasoning on request, over the wires that have them."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

import pytest

from denizen.adapters.models.capabilities import detect_capabilities
from denizen.adapters.models.providers import ProviderKind
from denizen.domain.agent import SamplingSettings
from denizen.domain.message import ImagePart
from denizen.testing.model_server import ModelAnswer, ModelServer
from tests.adapters.models.wire_fixture import (
    ANTHROPIC,
    COMPATIBLE,
    OPENAI,
    BuildCatalog,
    Wire,
    make_request,
    read_stream,
)

pytestmark = pytest.mark.anyio

DRAWING = Wire("openrouter", "google/gemini-2.5-flash-image")
PNG = "data:image/png;base64," + b64encode(b"\x89PNG" * 100).decode()


@pytest.mark.proves("C25")
@pytest.mark.parametrize("wire", [DRAWING, COMPATIBLE], ids=lambda wire: wire.kind)
async def test_the_pictures_of_an_answer_come_behind_its_text(
    server: ModelServer, build: BuildCatalog, wire: Wire
) -> None:
    server.script(ModelAnswer(text="A rose.", images=[PNG, PNG]))
    models = build(wire, overrides={"image_output": True})
    heard = await read_stream(models.get(wire.name), make_request("draw"))
    assert heard.text == "A rose."
    assert [part for part in heard.reply.parts if isinstance(part, ImagePart)] == [ImagePart(PNG, "image/png")] * 2
    assert server.bodies[0]["modalities"] == ["image", "text"]
    assert "tools" not in server.bodies[0]


async def test_a_picture_without_text_and_one_that_is_none_break_nothing(
    server: ModelServer, build: BuildCatalog
) -> None:
    server.script(ModelAnswer(images=["https://elsewhere.example/a.png", "data:image/png;base64,%%%", PNG]))
    heard = await read_stream(build(DRAWING).get(DRAWING.name), make_request("draw"))
    assert (heard.text, heard.reply.parts) == ("", (ImagePart(PNG, "image/png"),))


@pytest.mark.parametrize(
    ("kind", "model", "draws"),
    [
        ("google", "gemini-2.5-flash-image", True),
        ("openrouter", "google/gemini-3-pro-image-preview", True),
        ("openrouter", "openai/gpt-5-image", True),
        ("google", "gemini-2.5-flash", False),
        ("openai-compatible", "gemini-2.5-flash-image", False),
    ],
)
def test_models_that_draw_are_known_by_name(kind: ProviderKind, model: str, *, draws: bool) -> None:
    found = detect_capabilities(kind, model)
    assert found.image_output is draws
    if draws:
        assert found.images and not found.native_tools and not found.takes_tools


@pytest.mark.proves("C-config-toggles")
async def test_a_model_that_can_is_told_to_reason_and_the_others_are_asked_as_ever(
    server: ModelServer, build: BuildCatalog
) -> None:
    for wire in (ANTHROPIC, OPENAI, COMPATIBLE):
        for wanted in (True, False):
            server.script(ModelAnswer(text="Yes."))
            request = replace(
                make_request("why?"),
                reasoning=wanted,
                sampling=SamplingSettings(temperature=0.3),
                max_output_tokens=9000,
            )
            assert (await read_stream(build(wire).get(wire.name), request)).text == "Yes."
    told = ["thinking" in body for body in server.bodies]
    assert told == [True, False, False, False, False, False]
    assert ["temperature" in body for body in server.bodies] == [False, True, True, True, True, True]
