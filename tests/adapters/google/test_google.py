"""A Google account over HTTP, against a server that speaks Google's wire protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import httpx2
import pytest

from denizen.adapters.google import HttpGoogleAccount, HttpGoogleConsent, client
from denizen.domain.calendar import EventDraft, EventQuery
from denizen.domain.errors import DenizenError, InvalidInput, NeedsAttention, NotAllowed, NotFound, Unavailable
from denizen.domain.mail import OutgoingMail
from denizen.ports.google import GoogleService
from tests.clock import ManualClock
from tests.google_server import ADDRESS, SCOPE, GoogleServer, fault, make_times, open_google_server

pytestmark = pytest.mark.anyio

ROME = ZoneInfo("Europe/Rome")
BACK = "http://127.0.0.1:8400"
DAY = EventQuery(since=datetime(2026, 11, 24, tzinfo=UTC), until=datetime(2026, 11, 25, tzinfo=UTC))


@pytest.fixture
async def google() -> AsyncGenerator[GoogleServer]:
    async with open_google_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRY_S", 0.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def account(google: GoogleServer, clock: ManualClock) -> HttpGoogleAccount:
    return HttpGoogleAccount(google.login(), clock)


def make_mail(subject: str = "Tea?", text: str = "Приходи.") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ben <ben@example.net>", ADDRESS, subject
    mail["Date"], mail["Message-ID"] = "Tue, 24 Nov 2026 10:00:00 +0000", "<one@example.net>"
    mail.set_content(text)
    return mail


async def agree(google: GoogleServer, *services: GoogleService) -> str:
    """Goes the way of the account's owner through the consent, and returns the token to keep."""
    consent = HttpGoogleConsent(google.login(""))
    begun = await consent.begin(services, redirect_uri=BACK)
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(begun.url)
    back = parse_qs(urlsplit(answer.headers["location"]).query)
    assert back["state"] == [begun.state]
    return await consent.complete(code=back["code"][0], verifier=begun.verifier, redirect_uri=BACK)


async def test_a_consent_covers_the_services_that_were_asked_for_and_no_other(google: GoogleServer) -> None:
    token = await agree(google, GoogleService.DRIVE)
    assert set(google.refresh_tokens[token].split()) == {f"{SCOPE}drive.readonly", f"{SCOPE}drive.file"}
    account = HttpGoogleAccount(google.login(token), ManualClock())
    assert await account.check([GoogleService.DRIVE]) == ADDRESS
    with pytest.raises(NeedsAttention, match="did not let Denizen search mail"):
        await account.gmail.search("tea")


async def test_a_code_of_another_journey_and_a_consent_that_has_ended_are_refused(google: GoogleServer) -> None:
    consent = HttpGoogleConsent(google.login(""))
    with pytest.raises(NotAllowed, match="did not accept"):
        await consent.complete(code="4/0-stolen", verifier="x" * 43, redirect_uri=BACK)
    for refresh_token in ("", "1//ended"):
        with pytest.raises(NeedsAttention) as caught:
            await HttpGoogleAccount(google.login(refresh_token), ManualClock()).gmail.search("tea")
        assert "denizen connect google" in caught.value.fix
        assert "1//ended" not in repr(caught.value) + caught.value.explain()


async def test_an_access_token_is_kept_while_it_is_valid_and_renewed_when_it_is_taken_back(
    google: GoogleServer, account: HttpGoogleAccount, clock: ManualClock
) -> None:
    await account.check(list(GoogleService))
    assert len(google.access_tokens) == 1
    clock.advance(minutes=59)
    await account.gmail.search("tea")
    assert len(google.access_tokens) == 2
    google.access_tokens.clear()
    await account.gmail.search("tea")
    assert len(google.access_tokens) == 1


async def test_reading_is_tried_again_after_faults_that_pass_and_writing_is_not(
    google: GoogleServer, account: HttpGoogleAccount
) -> None:
    busy, often = fault(503, "Backend Error", "backendError"), fault(403, "Rate Limit Exceeded", "rateLimitExceeded")
    google.faults = [busy, often]
    assert await account.gmail.search("tea") == []
    google.faults = [busy]
    with pytest.raises(Unavailable, match="write mail"):
        await account.gmail.draft(OutgoingMail(key="k", to="ben@example.net", subject="Tea", text="At five."))
    assert google.drafts == {}
    google.faults = [busy, busy, often]
    with pytest.raises(Unavailable, match="so often"):
        await account.gmail.search("tea")


@pytest.mark.parametrize(
    ("status", "reason", "kind", "told"),
    [
        (403, "accessNotConfigured", NeedsAttention, "Switch the API on"),
        (403, "insufficientPermissions", NeedsAttention, "denizen connect google"),
        (403, "forbidden", NotAllowed, "the reason"),
        (404, "notFound", NotFound, "no such thing"),
        (400, "invalid", InvalidInput, "the reason"),
    ],
)
async def test_errors_say_what_is_wrong_and_what_to_do(
    google: GoogleServer, account: HttpGoogleAccount, status: int, reason: str, kind: type[Exception], told: str
) -> None:
    google.faults = [fault(status, "the reason", reason)]
    with pytest.raises(kind) as caught:
        await account.drive.find("tea")
    assert isinstance(caught.value, DenizenError) and told in caught.value.explain()
    assert "ya29" not in repr(caught.value)


async def test_a_server_that_is_away_is_told(google: GoogleServer) -> None:
    away = HttpGoogleAccount(replace(google.login(), api_url="http://127.0.0.1:1"), ManualClock())
    with pytest.raises(Unavailable) as caught:
        await away.gmail.search("tea")
    assert "Check the network" in caught.value.fix


async def test_mail_is_found_by_a_query_and_read_without_being_marked(
    google: GoogleServer, account: HttpGoogleAccount
) -> None:
    first, second = google.deliver(make_mail()), google.deliver(make_mail("Pearls", "Of wisdom"))
    found = await account.gmail.search("from:ben")
    assert [(each.id, each.subject, each.is_read) for each in found] == [
        (second, "Pearls", False),
        (first, "Tea?", False),
    ]
    assert [each.id for each in await account.gmail.search("is:unread wisdom")] == [second]
    mail = await account.gmail.read(first)
    assert (mail.text.strip(), mail.message_id, mail.thread) == ("Приходи.", "<one@example.net>", f"t{first}")
    assert "UNREAD" in google.mails[first].labels
    with pytest.raises(NotFound):
        await account.gmail.read("../../profile")


async def test_a_draft_is_sent_once_in_the_conversation_that_it_answers(
    google: GoogleServer, account: HttpGoogleAccount
) -> None:
    answered = await account.gmail.read(google.deliver(make_mail()))
    outgoing = OutgoingMail(key="k", to="ben@example.net", subject="Re: Tea?", text="Да.\n", answers=answered)
    draft = await account.gmail.draft(outgoing)
    assert google.drafts[draft]["threadId"] == answered.thread
    assert await account.gmail.send_draft(draft)
    assert not await account.gmail.send_draft(draft)
    [sent] = google.sent
    read = message_from_bytes(sent, policy=default)
    assert (read["To"], read["In-Reply-To"], read["From"]) == ("ben@example.net", "<one@example.net>", None)
    assert read.get_content().strip() == "Да."


async def test_events_are_listed_by_their_beginning_over_all_pages(
    google: GoogleServer, account: HttpGoogleAccount
) -> None:
    for hour in (18, 9, 12, 15, 21):
        times = make_times(datetime(2026, 11, 24, hour, tzinfo=UTC))
        google.add_event({"id": f"event{hour}", "summary": f"At {hour}", "recurringEventId": "series", **times})
    google.add_event({"id": "other", "summary": "Other day", **make_times(datetime(2026, 11, 26, 9, tzinfo=UTC))})
    found = await account.calendars.find_events(DAY)
    assert [each.title for each in found] == ["At 9", "At 12", "At 15", "At 18", "At 21"]
    assert all(each.is_recurring for each in found)
    few = EventQuery(since=DAY.since, until=DAY.until, words="at 1", limit=2)
    assert [each.title for each in await account.calendars.find_events(few)] == ["At 12", "At 15"]
    names = [(each.name, each.is_default, each.is_writable) for each in await account.calendars.list_calendars()]
    assert names == [("Ada", True, True), ("Holidays", False, False)]
    with pytest.raises(NotFound):
        await account.calendars.find_events(DAY, calendar="nobody@example.org")


async def test_an_event_is_made_once_changed_and_deleted_and_its_guests_are_told(
    google: GoogleServer, account: HttpGoogleAccount
) -> None:
    start = datetime(2026, 11, 24, 18, tzinfo=ROME)
    draft = EventDraft(title="Tea", start=start, end=start + timedelta(hours=1), guests=["ben@example.net"])
    assert await account.calendars.create_event(draft, key="call_1")
    assert not await account.calendars.create_event(draft, key="call_1")
    [event] = await account.calendars.find_events(DAY)
    assert (event.title, event.start, event.guests) == ("Tea", start, ("ben@example.net",))
    [row] = google.events[ADDRESS].values()
    assert row["start"]["timeZone"] == "Europe/Rome"
    days = EventDraft(start=date(2026, 11, 24), end=date(2026, 11, 26))
    changed = await account.calendars.change_event(event.id, days)
    assert (changed.title, changed.start, changed.end) == ("Tea", date(2026, 11, 24), date(2026, 11, 26))
    assert await account.calendars.get_event(event.id) == changed
    await account.calendars.delete_event(event.id)
    with pytest.raises(NotFound):
        await account.calendars.get_event(event.id)
    assert set(google.notified) == {"all"}


async def test_files_are_found_by_words_and_folder_and_texts_are_read(
    google: GoogleServer, account: HttpGoogleAccount
) -> None:
    document = "application/vnd.google-apps.document"
    google.add_file({"id": "1", "name": "Ada's plan", "mimeType": document, "modifiedTime": "2026-11-01"}, b"Tea at 5")
    google.add_file({"id": "2", "name": "a.md", "mimeType": "text/markdown", "parents": ["f"]}, b"# A")
    google.add_file({"id": "3", "name": "a.png", "mimeType": "image/png"}, b"\x89PNG")
    assert [each.name for each in await account.drive.find()] == ["Ada's plan", "a.md", "a.png"]
    assert [each.id for each in await account.drive.find("Ada's")] == ["1"]
    assert [each.id for each in await account.drive.find("a", folder="f")] == ["2"]
    assert await account.drive.find("x' or name contains 'a") == []
    assert (await account.drive.read("1"))[1] == "Tea at 5"
    assert (await account.drive.read("2"))[1] == "# A"
    with pytest.raises(InvalidInput, match="image/png"):
        await account.drive.read("3")


async def test_a_file_is_uploaded_once(google: GoogleServer, account: HttpGoogleAccount) -> None:
    google.add_file({"id": "f", "name": "Folder", "mimeType": "application/vnd.google-apps.folder"})
    data = "Чай\r\n--part".encode()
    made = await account.drive.upload("tea.md", data, key="k", media_type="text/markdown", folder="f")
    again = await account.drive.upload("tea.md", data, key="k", media_type="text/markdown", folder="f")
    assert made.id == again.id and made.url.endswith("/view")
    assert (google.contents[made.id], google.files[made.id]["parents"]) == (data, ["f"])
    with pytest.raises(NotFound):
        await account.drive.upload("tea.md", data, key="l", media_type="text/markdown", folder="none")
