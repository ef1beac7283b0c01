"""PDF files for tests, built by hand: one line of text a page, or whatever content is given."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence


def make_pdf(pages: Sequence[str]) -> bytes:
    """Each page shows its line."""
    return make_pdf_from_streams([f"BT /F1 12 Tf 72 720 Td ({line}) Tj ET".encode() for line in pages])


def make_pdf_from_streams(contents: Sequence[bytes], *, encoding: str = "/WinAnsiEncoding") -> bytes:
    """A page for each stream of drawing operators; `encoding` is the font's."""
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding {encoding} >>".encode(),
    ]
    for index, content in enumerate(contents):
        packed = zlib.compress(content)
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * index} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
        ]
    out, offsets = bytearray(b"%PDF-1.7\n"), list[int]()
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def encrypted_pdf(line: str, password: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf([line]))))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
