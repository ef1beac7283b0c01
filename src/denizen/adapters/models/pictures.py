"""Pictures in the answers of chat completions, which the vendor's layer leaves out.

OpenRouter and proxies that follow it send them as `images` beside the text:
`[{"type": "image_url", "image_url": {"url": "data:image/png;base64,..."}}]`.
Made by `vendors` for models that draw, in a worker thread.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from openai.types.chat import chat_completion_chunk
from pydantic_ai.messages import BinaryContent, FilePart, ModelResponseStreamEvent
from pydantic_ai.models.openai import OpenAIStreamedResponse
from pydantic_ai.models.openrouter import OpenRouterModel, OpenRouterStreamedResponse


class DrawingOpenRouterModel(OpenRouterModel):
    """`OpenRouterModel` whose streamed answers have their pictures."""

    @property
    def _streamed_response_cls(self) -> type[OpenRouterStreamedResponse]:
        return _WithPictures


class _Pictures(OpenAIStreamedResponse):
    def _map_part_delta(self, choice: chat_completion_chunk.Choice) -> Iterable[ModelResponseStreamEvent]:
        yield from super()._map_part_delta(choice)
        for picture in _pictures(choice.delta.model_extra or {}):
            yield self._parts_manager.handle_part(vendor_part_id=None, part=FilePart(picture))


class _WithPictures(_Pictures, OpenRouterStreamedResponse):
    """The streamed answer of OpenRouter, with pictures."""


_NOTHING: Mapping[str, Any] = {}


def _pictures(extra: Mapping[str, Any]) -> Iterator[BinaryContent]:
    """Yields the pictures. Anything malformed is left out: an answer must not fail because of it."""
    for row in cast("list[Mapping[str, Mapping[str, Any] | None]]", extra.get("images") or []):
        url = str((row.get("image_url") or _NOTHING).get("url", ""))
        head, _, body = url.removeprefix("data:").partition(";base64,")
        try:
            data = base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            continue
        if url.startswith("data:image/") and data:
            yield BinaryContent(data, media_type=head)
