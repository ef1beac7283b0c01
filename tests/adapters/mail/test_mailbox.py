"""A mailbox on real servers of IMAP and SMTP."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

import pytest

from denizen.adapters.mail import ImapMailbox
from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound, Unavailable
from denizen.domain.mail import OutgoingMail
from denizen.ports.mail import MailAccount, MailServer
from tests.clock import ManualClock
from tests.mail_server import PASSWORD, USER, MailServers, open_mail_servers

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def servers() -> Generator[MailServers]:
    with open_mail_servers() as servers:
        yield servers


@pytest.fixture
def account(servers: MailServers) -> MailAccount:
    return MailAccount(
        imap=MailServer("127.0.0.1", servers.imap_port, "none"),
        smtp=MailServer("127.0.0.1", servers.smtp_port, "none"),
        user=USER,
        password=PASSWORD,
        address="Ada <ada@example.org>",
    )


@pytest.fixture
def mailbox() -> ImapMailbox:
    return ImapMailbox(ManualClock())


def make_mail(subject: str, text: str, *, kind: str = "plain") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ben <ben@example.net>", "ada@example.org", subject
    mail["Date"], mail["Message-ID"] = "Tue, 24 Nov 2026 10:00:00 +0000", "<one@example.net>"
    mail.set_content(text, subtype=kind)
    return mail


def write(key: str, **more: str) -> OutgoingMail:
    return replace(OutgoingMail(key=key, to="ben@example.net", subject="Tea", text="At five.\n"), **more)


async def test_the_newest_mails_are_listed_first_and_read_without_being_marked(
    servers: MailServers, account: MailAccount, mailbox: ImapMailbox
) -> None:
    mail = make_mail("Чай в пять?", "Приходи.")
    mail.add_attachment(b"x", maintype="image", subtype="png", filename="map.png")
    servers.deliver(mail)
    servers.deliver(make_mail("Pearls", "<p>Of <b>wisdom</b></p>", kind="html"))
    first, second, *_ = await mailbox.list_mail(account)
    assert [(each.subject, each.sender, each.is_read) for each in (first, second)] == [
        ("Pearls", "Ben <ben@example.net>", False),
        ("Чай в пять?", "Ben <ben@example.net>", False),
    ]
    found = await mailbox.read_mail(account, second.id)
    assert (found.text.strip(), found.is_html, found.attachments) == ("Приходи.", False, ["map.png"])
    assert (await mailbox.read_mail(account, first.id)).is_html
    assert not (await mailbox.list_mail(account))[1].is_read
    assert [each.subject for each in await mailbox.list_mail(account, words='Pearls"')] == ["Pearls"]
    assert len(await mailbox.list_mail(account, limit=1)) == 1
    for missing in ("999999", "x", "1:*", "1 (FLAGS)", ""):
        with pytest.raises(NotFound):
            await mailbox.read_mail(account, missing)


async def test_a_mail_is_sent_once_and_a_copy_is_kept(
    servers: MailServers, account: MailAccount, mailbox: ImapMailbox
) -> None:
    servers.deliver(make_mail("Tea?", "When?"))
    answers = await mailbox.read_mail(account, (await mailbox.list_mail(account))[0].id)
    outgoing = replace(write("call_1", subject="Re: Tea?"), answers=answers)
    assert await mailbox.send(account, outgoing)
    assert not await mailbox.send(account, outgoing)
    [sent] = servers.sent
    read = message_from_bytes(sent, policy=default)
    assert (read["To"], read["Subject"], read["In-Reply-To"]) == ("ben@example.net", "Re: Tea?", "<one@example.net>")
    assert any(read["Message-ID"].encode() in each for each in servers.read_folder("Sent"))


async def test_a_draft_is_kept_and_not_sent(servers: MailServers, account: MailAccount, mailbox: ImapMailbox) -> None:
    before = list(servers.sent)
    await mailbox.draft(account, write("call_2", subject="Only a draft"))
    assert any(b"Only a draft" in each for each in servers.read_folder("Drafts"))
    assert servers.sent == before


@pytest.mark.parametrize(
    "more",
    [
        {"to": ""},
        {"to": "nobody"},
        {"to": "a@b.example\nBcc: c@d.example"},
        {"to": ", ".join(f"a{n}@b.example" for n in range(21))},
        {"subject": "Tea\nBcc: c@d.example"},
        {"to": "ben@refused.example"},
    ],
    ids=["none", "no address", "a heading in an address", "too many", "a heading in the subject", "refused"],
)
async def test_what_cannot_be_sent_is_refused_and_not_sent(
    more: dict[str, str], servers: MailServers, account: MailAccount, mailbox: ImapMailbox
) -> None:
    before = list(servers.sent)
    with pytest.raises(InvalidInput):
        await mailbox.send(account, write(f"call_{more}", **more))
    assert servers.sent == before


async def test_a_wrong_password_and_a_server_that_is_away_are_told(account: MailAccount, mailbox: ImapMailbox) -> None:
    with pytest.raises(NeedsAttention, match="does not let"):
        await mailbox.list_mail(replace(account, password="wrong"))
    with pytest.raises(Unavailable, match="does not answer"):
        await mailbox.list_mail(replace(account, imap=MailServer("127.0.0.1", 1, "none")))
    with pytest.raises(Unavailable, match="does not answer"):
        await mailbox.send(replace(account, smtp=MailServer("127.0.0.1", 1, "none")), write("call_3"))


async def test_a_mail_that_was_sent_is_no_failure_where_no_copy_can_be_kept(
    servers: MailServers, account: MailAccount, mailbox: ImapMailbox, caplog: pytest.LogCaptureFixture
) -> None:
    before = len(servers.sent)
    assert await mailbox.send(replace(account, sent="Trash"), write("call_4"))
    assert len(servers.sent) == before + 1
    assert "a mail was sent, but no copy of it was kept" in caplog.text
    assert PASSWORD not in caplog.text and "ben@example.net" not in caplog.text


async def test_a_mail_that_was_sent_is_no_failure_where_the_server_of_the_copy_goes_away(
    account: MailAccount, mailbox: ImapMailbox
) -> None:
    with open_mail_servers() as servers:
        own = replace(
            account,
            imap=MailServer("127.0.0.1", servers.imap_port, "none"),
            smtp=MailServer("127.0.0.1", servers.smtp_port, "none"),
        )
        servers.handler.on_taken = servers.stop_imap
        assert await mailbox.send(own, write("call_5"))
        assert len(servers.sent) == 1
