"""Reading the text of a PDF, for attachments and for documents of a source. `adapters/documents` implements it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from denizen.domain.record import record

MAX_PDF_BYTES = 20 * 1024 * 1024


@record
class PdfText:
    """The text of a PDF. `missing` says which part could not be read and why; it is empty when the text is whole.

    `is_temporary` means that the reader failed, not the PDF: another try may succeed.
    """

    text: str
    missing: str = ""
    is_temporary: bool = False


ReadPdf: TypeAlias = Callable[[bytes], Awaitable[PdfText]]
"""Returns the text of a PDF. Never raises: a PDF that cannot be read has no text, and `missing` says why."""
