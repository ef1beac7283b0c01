"""The text of PDF files, good, bad and hostile."""

from __future__ import annotations

import pytest

from denizen.adapters.documents.pdf import read_pdf
from tests.adapters.documents.pdf_files import encrypted_pdf, make_pdf, make_pdf_from_streams

pytestmark = pytest.mark.anyio


async def test_the_text_of_all_pages_is_read():
    pdf = await read_pdf(make_pdf(["High at six", "Low at noon"]))
    assert pdf.text == "High at six\n\nLow at noon"
    assert pdf.missing == ""


async def test_ligatures_become_letters_and_no_other_character_is_changed():
    glyphs = "/ff /fi /fl /ffi /ffl /uniFB05 /uniFB06 /twosuperior"
    line = rb"wa\001les \002n \003y o\004ce ba\005e \006ay re\007 x\010"
    drawn = b"BT /F1 12 Tf 72 720 Td (" + line + b") Tj ET"
    encoding = f"<< /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [1 {glyphs}] >>"
    pdf = await read_pdf(make_pdf_from_streams([drawn], encoding=encoding))
    assert pdf.text == "waffles fin fly office baffle stay rest x²"


@pytest.mark.parametrize(
    ("data", "lacks"),
    [
        (b"", "it is damaged"),
        (b"no PDF at all", "it is damaged"),
        (make_pdf(["High at six"])[:200], "it is damaged"),
        (encrypted_pdf("secret", "word"), "it is encrypted"),
        (make_pdf([""]), "it has no text, only pictures"),
    ],
)
async def test_a_bad_pdf_has_no_text_but_a_reason(data: bytes, lacks: str):
    pdf = await read_pdf(data)
    assert (pdf.text, pdf.missing) == ("", lacks)


async def test_a_pdf_that_only_its_owner_locked_can_be_read():
    pdf = await read_pdf(encrypted_pdf("open to all", ""))
    assert (pdf.text, pdf.missing) == ("open to all", "")


async def test_a_long_pdf_is_cut_after_a_hundred_pages():
    pdf = await read_pdf(make_pdf([f"page {number}" for number in range(1, 151)]))
    assert pdf.text.endswith("page 100")
    assert pdf.missing == "only 100 of 150 pages were read: it is long"


async def test_much_text_is_cut_at_its_limit():
    line = "tide " * 20_000
    pdf = await read_pdf(make_pdf([line] * 4))
    assert 250_000 < len(pdf.text.encode()) <= 256 * 1024 + 8
    assert pdf.missing == "only 3 of 4 pages were read: it is long"


async def test_a_reader_that_does_not_end_is_ended():
    endless = b"BT /F1 12 Tf 72 720 Td (x) Tj ET\n" * 1_000_000
    pdf = await read_pdf(make_pdf_from_streams([endless]), timeout_s=1.0)
    assert (pdf.text, pdf.missing) == ("", "reading it takes too long")


async def test_a_page_that_would_fill_the_memory_ends_the_reader_and_what_it_read_is_kept():
    packed = b" " * 80_000_000
    pdf = await read_pdf(make_pdf_from_streams([b"BT /F1 12 Tf 72 720 Td (first) Tj ET", packed]))
    assert pdf.text == "first"
    assert pdf.missing == "only 1 of 2 pages were read: it is damaged"
