"""Pictures, encoded anew: the pixels stay, and everything else that a file may hold goes."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.installation import build_install_command
from denizen.domain.upload import MAX_IMAGE_EDGE, WEBP_QUALITY

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MAX_PIXELS = 50_000_000
"""A picture of that size takes 200 MB while it is decoded, so one is at a time."""

_one_at_a_time = CapacityLimiter(1)


async def encode_image(data: bytes) -> bytes:
    """`denizen.ports.uploads.EncodeImage`, with Pillow. An animation keeps its first picture."""
    return await to_thread.run_sync(_encode, data, limiter=_one_at_a_time)


def _encode(data: bytes) -> bytes:
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise NeedsAttention(
            "This server cannot take pictures.",
            code="images_missing",
            why="Pillow is not installed, with which pictures are read",
            fix=f"Run `{build_install_command('images')}`.",
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # we have a limit of our own
            with Image.open(BytesIO(data), formats=FORMATS) as opened:
                _check_size(opened)
                opened.draft("RGB", (MAX_IMAGE_EDGE, MAX_IMAGE_EDGE))  # of a JPEG, decodes fewer pixels
                picture = ImageOps.exif_transpose(opened)
                has_alpha = "A" in picture.getbands() or "transparency" in picture.info
                picture = picture.convert("RGBA" if has_alpha else "RGB")
    except Image.DecompressionBombError as error:
        raise _too_large() from error
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise _unreadable() from error
    picture.thumbnail((MAX_IMAGE_EDGE, MAX_IMAGE_EDGE))
    encoded = BytesIO()
    picture.save(encoded, "WEBP", quality=WEBP_QUALITY, exif=b"", icc_profile=b"", xmp=b"")
    return encoded.getvalue()


def _check_size(picture: Picture) -> None:
    if picture.width * picture.height > MAX_PIXELS:
        raise _too_large()


def _too_large() -> InvalidInput:
    return InvalidInput(
        f"The picture has more than {MAX_PIXELS:,} pixels.", code="upload_image_large", fix="Make it smaller."
    )


def _unreadable() -> InvalidInput:
    return InvalidInput(
        "The picture cannot be read.", code="upload_image_broken", fix="Send a whole PNG, JPEG, GIF or WebP file."
    )
