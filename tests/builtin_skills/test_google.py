"""The tools of a Google account: what they read, what they send, and who has to be asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest

from denizen.adapters.google import HttpGoogleAccount
from denizen.builtin_skills import load_builtin
from denizen.domain.json import Json
from denizen.domain.tool import Effect, Taint, Tier, ToolResult
from denizen.skill import SkillToolset
from tests.clock import ManualClock
from tests.google_server import ADDRESS, GoogleServer, fault, make_times, open_google_server
from tests.skill_fixture import ServicesFixture, run, scope

pytestmark = pytest.mark.anyio

OPTIONS: Mapping[str, Mapping[str, Json]] = {"google_calendar": {"timezone": "Europe/Rome"}}


@dataclass
class Tools:
    """The tools of the three skills, with the account that they act on."""

    google: GoogleServer
    root: Path

    async def call(self, skill: str, tool: str, *, key: str = "", **args: Json) -> ToolResult:
        clock = ManualClock(datetime(2026, 11, 24, 8, tzinfo=UTC))
        services = replace(
            ServicesFixture(self.root, clock=clock).services(), google=HttpGoogleAccount(self.google.login(), clock)
        )
        options = {"allowed": [str(self.root)]} if skill == "google_drive" else OPTIONS.get(skill, {})
        return await run(SkillToolset(load_builtin(skill), services, options), tool, args, scope(key=key))

    async def tell(self, skill: str, tool: str, *, key: str = "", **args: Json) -> str:
        result = await self.call(skill, tool, key=key, **args)
        assert not result.is_error, result.text
        return result.text


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncGenerator[Tools]:
    async with open_google_server() as google:
        yield Tools(google, tmp_path)


def make_mail() -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ben <ben@example.net>", ADDRESS, "Tea?"
    mail["Date"], mail["Message-ID"] = "Tue, 24 Nov 2026 10:00:00 +0000", "<one@example.net>"
    mail.set_content("<p>Come</p><p>at <b>five</b>.</p>", subtype="html")
    mail.add_attachment(b"x", maintype="image", subtype="png", filename="map.png")
    return mail


@pytest.mark.proves("T-tool-gmail")
async def test_mail_is_searched_read_and_answered(tools: Tools) -> None:
    mail = tools.google.deliver(make_mail())
    listed = await tools.tell("gmail", "search_gmail", query="from:ben")
    assert f"{mail} (unread): Ben <ben@example.net>, Tue, 24 Nov 2026 10:00:00 +0000: Tea?" in listed
    read = await tools.tell("gmail", "read_gmail", mail=mail)
    assert read.startswith("<untrusted ") and "Subject: Tea?" in read and "at five." in read and "map.png" in read
    sent = await tools.tell(
        "gmail", "send_gmail", key="call", to="ben@example.net", subject="Re: Tea?", text="Yes.", answers=mail
    )
    assert sent == "Sent to ben@example.net."
    again = await tools.tell(
        "gmail", "send_gmail", key="call", to="ben@example.net", subject="Re: Tea?", text="Yes.", answers=mail
    )
    assert again == "It was sent to ben@example.net already."
    [raw] = tools.google.sent
    written = message_from_bytes(raw, policy=default)
    assert (written["To"], written["In-Reply-To"]) == ("ben@example.net", "<one@example.net>")
    assert tools.google.drafts == {}


async def test_a_draft_stays_and_nothing_is_sent(tools: Tools) -> None:
    await tools.tell("gmail", "draft_gmail", to="ben@example.net", subject="Tea", text="At five.")
    assert len(tools.google.drafts) == 1 and tools.google.sent == []


async def test_what_is_no_address_and_a_mail_that_is_not_there_are_told_in_own_words(tools: Tools) -> None:
    wrong = await tools.call("gmail", "send_gmail", to="a@b.example\nBcc: c@d.example", subject="x", text="x")
    missing = await tools.call("gmail", "read_gmail", mail="none")
    assert wrong.is_error and missing.is_error and wrong.is_own and missing.is_own
    assert tools.google.drafts == {}
    assert (await tools.call("gmail", "search_gmail", query="nothing")).is_own


async def test_a_send_without_an_answer_is_not_told_as_failed(tools: Tools) -> None:
    await tools.tell("gmail", "draft_gmail", key="call", to="ben@example.net", subject="Tea", text="x")
    tools.google.faults = [fault(503, "Backend Error", "backendError")]
    result = await tools.call("gmail", "send_gmail", key="call", to="ben@example.net", subject="Tea", text="x")
    assert result.is_error and "may have gone out or not" in result.text


@pytest.mark.proves("T-tool-google-calendar")
async def test_events_are_listed_found_and_created_in_the_configured_zone(tools: Tools) -> None:
    assert "Ada [id ada@gmail.com], the default one" in await tools.tell("google_calendar", "list_google_calendars")
    tools.google.add_event({"id": "e1", "summary": "Tea", **make_times(datetime(2026, 11, 24, 17, tzinfo=UTC))})
    tools.google.add_event({"id": "e2", "summary": "Lunch", **make_times(datetime(2026, 11, 26, 11, tzinfo=UTC))})
    tools.google.add_event({"id": "e3", "summary": "Later", **make_times(datetime(2026, 12, 24, 11, tzinfo=UTC))})
    listed = await tools.tell("google_calendar", "list_google_events")
    assert "Tue 2026-11-24 18:00 to 19:00: Tea [id e1]" in listed and "Lunch" in listed and "Later" not in listed
    assert listed.startswith("<untrusted ") and "times in Europe/Rome" in listed
    found = await tools.tell("google_calendar", "list_google_events", words="later", until="2027-01-01")
    assert "Later" in found and "Lunch" not in found
    assert (await tools.call("google_calendar", "list_google_events", words="nothing")).is_own
    made = await tools.tell(
        "google_calendar",
        "create_google_event",
        key="call",
        title="Dinner",
        start="2026-11-25T20:00",
        place="Trattoria",
        guests="ben@example.net, kim@example.net",
    )
    assert made == "Made: Wed 2026-11-25 20:00 to 21:00: Dinner (Europe/Rome)."
    [row] = [row for row in tools.google.events[ADDRESS].values() if row["summary"] == "Dinner"]
    assert datetime.fromisoformat(row["start"]["dateTime"]) == datetime(2026, 11, 25, 19, tzinfo=UTC)
    assert row["attendees"] == [{"email": "ben@example.net"}, {"email": "kim@example.net"}]
    again = await tools.tell(
        "google_calendar", "create_google_event", key="call", title="Dinner", start="2026-11-25T20:00"
    )
    assert again.startswith("It was made already")


async def test_an_event_is_changed_and_deleted_under_the_title_that_people_approve(tools: Tools) -> None:
    tools.google.add_event({"id": "e1", "summary": "Tea", **make_times(datetime(2026, 11, 24, 17, tzinfo=UTC))})
    wrong = await tools.call("google_calendar", "delete_google_event", event="e1", title_now="Lunch")
    assert wrong.is_error and "another title" in wrong.text and "e1" in tools.google.events[ADDRESS]
    changed = await tools.tell(
        "google_calendar",
        "change_google_event",
        event="e1",
        title_now="Tea",
        title="Coffee",
        start="2026-11-25",
        end="2026-11-26",
    )
    assert "Wed 2026-11-25 to Thu 2026-11-26, all day: Coffee" in changed
    half = await tools.call(
        "google_calendar", "change_google_event", event="e1", title_now="Coffee", start="2026-11-25"
    )
    assert half.is_error and "together" in half.text
    assert await tools.tell("google_calendar", "delete_google_event", key="c", event="e1", title_now="Coffee") == (
        "Deleted Coffee."
    )
    again = await tools.tell("google_calendar", "delete_google_event", key="c", event="e1", title_now="Coffee")
    assert again == "It was deleted already."
    assert (await tools.call("google_calendar", "delete_google_event", event="e1", title_now="Coffee")).is_error


@pytest.mark.proves("T-tool-google-drive")
async def test_files_are_uploaded_listed_and_found(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "plan.pdf").write_bytes(b"%PDF-1.7 tea")
    text = await tools.tell("google_drive", "upload_drive_file", key="a", name="tea.md", text="# Чай")
    assert text.startswith("Uploaded tea.md [id file-0] text/markdown, 8 bytes") and "https://" in text
    await tools.tell("google_drive", "upload_drive_file", key="b", name="plan.pdf", path="plan.pdf")
    await tools.tell("google_drive", "upload_drive_file", key="b", name="plan.pdf", path="plan.pdf")
    assert tools.google.contents == {"file-0": "# Чай".encode(), "file-1": b"%PDF-1.7 tea"}
    assert tools.google.files["file-1"]["mimeType"] == "application/pdf"
    listed = await tools.tell("google_drive", "find_drive_files")
    assert listed.startswith("<untrusted ") and "tea.md" in listed and "plan.pdf" in listed
    found = await tools.tell("google_drive", "find_drive_files", words="чай")
    assert "tea.md" in found and "plan.pdf" not in found
    assert "# Чай" in await tools.tell("google_drive", "read_drive_file", file="file-0")


async def test_only_files_of_allowed_folders_are_uploaded(tools: Tools) -> None:
    for args in ({"path": "/etc/passwd"}, {"path": "../x"}, {}, {"text": "x", "path": "x"}):
        result = await tools.call("google_drive", "upload_drive_file", name="x", **args)
        assert result.is_error
    assert tools.google.files == {}


async def test_without_an_account_the_tools_say_how_to_connect_one(tmp_path: Path) -> None:
    for skill in ("gmail", "google_calendar", "google_drive"):
        toolset = SkillToolset(load_builtin(skill), ServicesFixture(tmp_path).services(), {})
        spec = (await toolset.list_tools())[0]
        result = await run(toolset, spec.name, {})
        assert result.is_error and "denizen connect google" in result.text and result.is_own


def test_reading_taints_and_what_goes_out_is_dangerous() -> None:
    for skill in ("gmail", "google_calendar", "google_drive"):
        for spec in load_builtin(skill).specs():
            is_sending = spec.name.split("_")[0] in {"send", "create", "change", "delete", "upload"}
            assert spec.tier is (Tier.DANGEROUS if is_sending else Tier.SENSITIVE)
            assert (Effect.SEND in spec.flow.effects) is is_sending
            assert (
                is_sending
                or spec.name.startswith("draft")
                or spec.flow.reads & {Taint.MAIL, Taint.DOCUMENT, Taint.OTHERS}
            )
