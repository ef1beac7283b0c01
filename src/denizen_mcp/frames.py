"""Several pictures as one: side by side on a sheet, or one after another in a GIF. Pillow is loaded on first use."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from denizen.skill import ToolError

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

_TRANSPARENT = (0, 0, 0, 0)


def resize_square(picture: bytes, side: int) -> bytes:
    """A PNG with both sides of that many pixels; hard edges stay hard. Raises ToolError for what is no picture."""
    from PIL import Image

    with _opened(picture) as image:
        return _png(image.convert("RGBA").resize((side, side), Image.Resampling.NEAREST))


def get_size(picture: bytes) -> tuple[int, int]:
    """Width and height in pixels. Raises ToolError for what is no picture."""
    with _opened(picture) as image:
        return image.size


def build_sheet(pictures: Sequence[bytes]) -> bytes:
    """A PNG with the pictures in one row. Raises ToolError for what is no picture."""
    from PIL import Image

    images = [_opened(picture).convert("RGBA") for picture in pictures]
    whole = Image.new("RGBA", (sum(i.width for i in images), max(i.height for i in images)), _TRANSPARENT)
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width
    return _png(whole)


def build_gif(pictures: Sequence[bytes], *, fps: int, loop: bool) -> bytes:
    """A GIF. Its times are counted in hundredths of a second, so that more than 50 frames a second are shown as 50.

    Raises ToolError for what is no picture.
    """
    first, *rest = [_opened(picture).convert("RGBA") for picture in pictures]
    out = io.BytesIO()
    options = {"loop": 0} if loop else {}
    first.save(
        out, "GIF", save_all=True, append_images=rest, duration=max(round(100 / fps), 2) * 10, disposal=2, **options
    )
    return out.getvalue()


def _opened(picture: bytes) -> Picture:
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(picture))
        image.load()
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise ToolError("What the service sent is no picture.") from error
    return image


def _png(image: Picture) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
