"""Mails of strangers: what is long or broken in them is read in part, or refused."""

from __future__ import annotations

import pytest

from denizen.domain.errors import InvalidInput
from denizen.domain.mail import MAX_BYTES, MAX_PARTS, ReceivedMail, read_mail, summarize_mail

START = b"From: ben@example.net\r\nSubject: Tea\r\nMIME-Version: 1.0\r\n"
MIXED = START + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"


def read(data: bytes) -> ReceivedMail:
    return read_mail("1", data, is_read=True)


@pytest.mark.parametrize(
    "heading",
    [
        b"From: " + b"a@b.example, " * 100_000,
        b"From: " + b"(" * 100_000,
        b'Content-Type: text/plain; a="' + b"a*" * 9000,
    ],
)
def test_a_heading_that_would_take_minutes_to_read_is_read_in_part(heading: bytes) -> None:
    mail = read(heading + b"\r\nSubject: Tea\r\n\r\nAt five.")
    assert (mail.summary.subject, mail.text) == ("Tea", "At five.") and len(mail.summary.sender) <= 500
    assert summarize_mail("1", heading + b"\r\nSubject: Tea\r\n\r\n", is_read=True) == mail.summary


@pytest.mark.parametrize(
    "data",
    [
        MIXED + b"--b\r\n\r\nx\r\n" * MAX_PARTS,
        START + b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(2000)),
    ],
    ids=["many", "nested"],
)
def test_a_mail_of_too_many_parts_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="more than 200 parts"):
        read(data)


def test_names_of_attachments_are_cut_and_counted() -> None:
    part = b'--b\r\nContent-Disposition: attachment; filename="%s"\r\n\r\nx\r\n' % (b"a" * 300)
    mail = read(MIXED + b"--b\r\n\r\nAt five.\r\n" + part * 25)
    assert mail.text == "At five." and mail.attachments == [*["a" * 100] * 20, "and 5 more"]


def test_of_a_huge_mail_the_beginning_is_read() -> None:
    mail = read(START + b"\r\n" + b"x" * (MAX_BYTES + 1))
    assert len(mail.text) == MAX_BYTES - len(START) - 2
