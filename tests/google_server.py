"""Google's side of OAuth, Gmail, Calendar and Drive over real HTTP on loopback, for tests.

It speaks the wire protocol of Google's reference pages as far as Denizen uses it, and checks what Google checks: the
client, the code and its verifier, the scopes of a token, the shape of requests. `faults` are answers that come first.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any
from urllib.parse import parse_qs, urlencode
from zoneinfo import ZoneInfo

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from denizen.ports.google import GoogleLogin

CLIENT_ID, CLIENT_SECRET = "12-ab.apps.googleusercontent.com", "GOCSPX-the-secret-of-the-client"
ADDRESS = "ada@gmail.com"
ZONE = ZoneInfo("Europe/Rome")
"""The zone of the account's calendars."""
SCOPE = "https://www.googleapis.com/auth/"
ALL_SCOPES = (
    f"{SCOPE}gmail.readonly {SCOPE}gmail.compose {SCOPE}calendar.calendarlist.readonly {SCOPE}calendar.events "
    f"{SCOPE}drive.readonly {SCOPE}drive.file"
)

Row = dict[str, Any]


@dataclass
class Mail:
    raw: bytes
    labels: list[str]


@dataclass
class GoogleServer:
    """An account with its mail, calendars and files, and the tokens that were given out."""

    url: str = ""
    is_allowing: bool = True
    faults: list[tuple[int, Row]] = field(default_factory=list[tuple[int, Row]])
    asked: list[str] = field(default_factory=list[str])
    grants: dict[str, Row] = field(default_factory=dict[str, Row])
    refresh_tokens: dict[str, str] = field(default_factory=lambda: {"1//first": ALL_SCOPES})
    access_tokens: dict[str, str] = field(default_factory=dict[str, str])
    mails: dict[str, Mail] = field(default_factory=dict[str, Mail])
    drafts: dict[str, Row] = field(default_factory=dict[str, Row])
    sent: list[bytes] = field(default_factory=list[bytes])
    calendars: list[Row] = field(default_factory=list[Row])
    events: dict[str, dict[str, Row]] = field(default_factory=dict[str, dict[str, Row]])
    notified: list[str] = field(default_factory=list[str])
    files: dict[str, Row] = field(default_factory=dict[str, Row])
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def login(self, refresh_token: str = "1//first") -> GoogleLogin:
        return GoogleLogin(
            client_id=CLIENT_ID, client_secret=CLIENT_SECRET, refresh_token=refresh_token, api_url=self.url
        )

    def deliver(self, mail: EmailMessage) -> str:
        """Puts a mail into the inbox and returns its id."""
        name = f"19a{len(self.mails):05x}"
        self.mails[name] = Mail(bytes(mail), ["INBOX", "UNREAD"])
        return name

    def add_event(self, row: Row, calendar: str = ADDRESS) -> None:
        self.events.setdefault(calendar, {})[row["id"]] = {"status": "confirmed", **row}

    def add_file(self, row: Row, data: bytes = b"") -> None:
        self.files[row["id"]] = {"trashed": False, "parents": ["root"], **row}
        self.contents[row["id"]] = data

    # OAuth

    async def authorize(self, request: Request) -> Response:
        query = request.query_params
        is_right = (
            query["client_id"] == CLIENT_ID
            and query["response_type"] == "code"
            and query["code_challenge_method"] == "S256"
            and query["access_type"] == "offline"
            and re.fullmatch(r"http://127\.0\.0\.1:\d+", query["redirect_uri"].rstrip("/"))
            and set(query["scope"].split()) <= set(ALL_SCOPES.split())
        )
        if not is_right:
            return PlainTextResponse("Error 400: invalid_request", 400)
        if not self.is_allowing:
            answer = {"error": "access_denied", "state": query["state"]}
        else:
            code = f"4/0{len(self.grants)}"
            self.grants[code] = dict(query)
            answer = {"code": code, "state": query["state"], "scope": query["scope"]}
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(answer)}")

    async def trade(self, request: Request) -> Response:
        fields = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        if (fields.get("client_id"), fields.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return JSONResponse({"error": "invalid_client", "error_description": "Unauthorized"}, 401)
        more: Row = {}
        if fields.get("grant_type") == "refresh_token":
            scope = self.refresh_tokens.get(fields.get("refresh_token", ""))
        else:
            grant = self.grants.pop(fields.get("code", ""), None)
            verifier = fields.get("code_verifier", "")
            challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
            is_right = grant is not None and (grant["code_challenge"], grant["redirect_uri"]) == (
                challenge,
                fields.get("redirect_uri"),
            )
            scope = grant["scope"] if is_right and grant is not None else None
            if scope is not None:
                more["refresh_token"] = f"1//{len(self.refresh_tokens)}-token"
                self.refresh_tokens[more["refresh_token"]] = scope
        if scope is None:
            return JSONResponse(
                {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, 400
            )
        token = f"ya29.{len(self.access_tokens)}"
        self.access_tokens[token] = scope
        return JSONResponse({"access_token": token, "expires_in": 3599, "scope": scope, "token_type": "Bearer", **more})

    # Gmail

    async def list_mail(self, request: Request) -> Response:
        words = [word for word in request.query_params["q"].lower().split() if word != "in:inbox"]
        found = [
            name
            for name, mail in reversed(self.mails.items())
            if all(_fits(message_from_bytes(mail.raw, policy=default), mail, word) for word in words)
        ]
        rows = [{"id": name, "threadId": f"t{name}"} for name in found[: int(request.query_params["maxResults"])]]
        return JSONResponse({"resultSizeEstimate": len(rows), **({"messages": rows} if rows else {})})

    async def get_mail(self, request: Request) -> Response:
        name = request.path_params["mail"]
        mail = self.mails.get(name)
        if mail is None:
            return _error(404, "Requested entity was not found.", "notFound")
        row: Row = {"id": name, "threadId": f"t{name}", "labelIds": mail.labels}
        if request.query_params["format"] == "raw":
            row["raw"] = base64.urlsafe_b64encode(mail.raw).decode()
        else:
            read = message_from_bytes(mail.raw, policy=default)
            wanted = request.query_params.getlist("metadataHeaders")
            row["payload"] = {"headers": [{"name": each, "value": str(read[each])} for each in wanted if each in read]}
        return JSONResponse(row)

    async def add_draft(self, request: Request) -> Response:
        message = (await request.json())["message"]
        name = f"r{len(self.drafts)}"
        self.drafts[name] = message
        return JSONResponse({"id": name, "message": {"id": f"m{name}", "labelIds": ["DRAFT"]}})

    async def send_draft(self, request: Request) -> Response:
        message = self.drafts.pop((await request.json())["id"], None)
        if message is None:
            return _error(404, "Requested entity was not found.", "notFound")
        self.sent.append(base64.urlsafe_b64decode(message["raw"]))
        return JSONResponse({"id": "m", "threadId": message.get("threadId", "t"), "labelIds": ["SENT"]})

    async def get_profile(self, _: Request) -> Response:
        return JSONResponse({"emailAddress": ADDRESS, "messagesTotal": len(self.mails)})

    # Calendar

    async def list_calendars(self, _: Request) -> Response:
        return JSONResponse({"kind": "calendar#calendarList", "items": self.calendars})

    async def list_events(self, request: Request) -> Response:
        query, rows = request.query_params, self._find_events(request)
        if rows is None:
            return _error(404, "Not Found", "notFound")
        first, last = (datetime.fromisoformat(query[name]) for name in ("timeMin", "timeMax"))
        words = query.get("q", "").lower().split()
        found = sorted(
            (
                row
                for row in rows.values()
                if _instant(row["end"]) > first
                and _instant(row["start"]) < last
                and all(word in " ".join(str(row.get(name, "")) for name in _TEXTS).lower() for word in words)
            ),
            key=lambda row: _instant(row["start"]),
        )
        begin = int(query.get("pageToken", 0))
        end = begin + min(int(query["maxResults"]), 3)
        return JSONResponse({"items": found[begin:end], **({"nextPageToken": str(end)} if end < len(found) else {})})

    async def change_events(self, request: Request) -> Response:
        """Adds one, or reads, changes or deletes the one that is named."""
        rows = self._find_events(request)
        if rows is None:
            return _error(404, "Not Found", "notFound")
        if request.method != "GET":
            self.notified.append(request.query_params["sendUpdates"])
        if request.method == "POST":
            row = await request.json()
            if row["id"] in rows:
                return _error(409, "The requested identifier already exists.", "duplicate")
            if not re.fullmatch(r"[a-v0-9]{5,1024}", row["id"]):
                return _error(400, "Invalid resource id value.", "invalid")
            rows[row["id"]] = {"status": "confirmed", **row}
            return JSONResponse(rows[row["id"]])
        row = rows.get(request.path_params["event"])
        if row is None:
            return _error(404, "Not Found", "notFound")
        if request.method == "DELETE":
            del rows[row["id"]]
            return Response(status_code=204)
        if request.method == "PATCH":
            for key, value in (await request.json()).items():
                row[key] = {**row.get(key, {}), **value} if isinstance(value, dict) else value
        return JSONResponse(row)

    def _find_events(self, request: Request) -> dict[str, Row] | None:
        calendar = request.path_params["calendar"]
        name = ADDRESS if calendar == "primary" else calendar
        known = {row["id"] for row in self.calendars} | {ADDRESS}
        return self.events.setdefault(name, {}) if name in known else None

    # Drive

    async def list_files(self, request: Request) -> Response:
        query = request.query_params["q"]
        if "fullText" in query and "orderBy" in request.query_params:
            return _error(400, "Sorting is not supported for queries with fullText terms.", "invalid")
        found = [row for name, row in self.files.items() if _is_found(row, self.contents[name], query)]
        found.sort(key=lambda row: row.get("modifiedTime", ""), reverse=True)
        return JSONResponse({"files": [_shown(row) for row in found[: int(request.query_params["pageSize"])]]})

    async def get_file(self, request: Request) -> Response:
        name = request.path_params["file"]
        row = self.files.get(name)
        if row is None:
            return _error(404, f"File not found: {name}.", "notFound")
        is_own = row["mimeType"].startswith("application/vnd.google-apps.")
        if request.url.path.endswith("/export"):
            if not is_own or request.query_params["mimeType"] not in {"text/plain", "text/csv"}:
                return _error(403, "Export only supports Docs Editors files.", "fileNotExportable")
            return Response(self.contents[name], media_type=request.query_params["mimeType"])
        if request.query_params.get("alt") == "media":
            if is_own:
                return _error(403, "Only files with binary content can be downloaded.", "fileNotDownloadable")
            return Response(self.contents[name], media_type=row["mimeType"])
        return JSONResponse(_shown(row))

    async def upload(self, request: Request) -> Response:
        mark = request.headers["content-type"].partition("boundary=")[2].encode()
        assert request.query_params["uploadType"] == "multipart"
        _, about, media, end = (await request.body()).split(b"--" + mark)
        assert end.strip() == b"--"
        row = json.loads(about.partition(b"\r\n\r\n")[2])
        data = media.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        if not set(row.get("parents", [])) <= {"root", *self.files}:
            return _error(404, f"File not found: {row['parents'][0]}.", "notFound")
        name = f"file-{len(self.files)}"
        link = f"https://drive.google.com/file/d/{name}/view"
        more = {"id": name, "modifiedTime": "2026-11-24T10:00:00.000Z", "webViewLink": link, "size": str(len(data))}
        self.add_file({**row, **more}, data)
        return JSONResponse(_shown(self.files[name]))

    async def about(self, _: Request) -> Response:
        return JSONResponse({"user": {"emailAddress": ADDRESS}})


_TEXTS = ("summary", "description", "location")


def _fits(read: EmailMessage, mail: Mail, word: str) -> bool:
    name, colon, value = word.partition(":")
    if not colon:
        return word.encode() in mail.raw.lower()
    return value.upper() in mail.labels if name == "is" else value in str(read[name]).lower()


def _instant(row: Row) -> datetime:
    if row.get("dateTime"):
        return datetime.fromisoformat(row["dateTime"])
    return datetime.combine(date.fromisoformat(row["date"]), time(), ZONE)


def _is_found(row: Row, data: bytes, query: str) -> bool:
    """Reads the three kinds of queries that there are here, quotes and all."""
    text = r"'((?:[^'\\]|\\.)*)'"
    plain = {
        name: [re.sub(r"\\(.)", r"\1", each) for each in re.findall(form, query)]
        for name, form in (
            ("words", rf"fullText contains {text}"),
            ("parents", rf"{text} in parents"),
            ("keys", rf"key='denizenKey' and value={text}"),
        )
    }
    return (
        not row["trashed"]
        and all(word.lower() in f"{row['name']} {data.decode(errors='replace')}".lower() for word in plain["words"])
        and all(parent in row["parents"] for parent in plain["parents"])
        and all(row.get("appProperties", {}).get("denizenKey") == key for key in plain["keys"])
    )


_SHOWN = ("id", "name", "mimeType", "modifiedTime", "size", "webViewLink")


def _shown(row: Row) -> Row:
    return {name: row[name] for name in _SHOWN if name in row}


def _error(status: int, message: str, reason: str) -> Response:
    return JSONResponse(fault(status, message, reason)[1], status)


def fault(status: int, message: str, reason: str) -> tuple[int, Row]:
    """Returns an error as Google's APIs answer it."""
    return status, {"error": {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}}


@asynccontextmanager
async def open_google_server() -> AsyncGenerator[GoogleServer]:
    google = GoogleServer(
        calendars=[
            {"id": ADDRESS, "summary": "Ada", "primary": True, "accessRole": "owner"},
            {"id": "holidays@example.org", "summary": "Holidays", "accessRole": "reader"},
        ]
    )
    needs = {"gmail": "gmail.", "calendar": "calendar.", "drive": "drive.", "upload": "drive."}

    def guard(handler: Any) -> Any:
        async def answer(request: Request) -> Response:
            google.asked.append(f"{request.method} {request.url.path}")
            if google.faults:
                status, body = google.faults.pop(0)
                return JSONResponse(body, status)
            scope = google.access_tokens.get(request.headers["authorization"].removeprefix("Bearer "))
            if scope is None:
                return _error(401, "Invalid Credentials", "authError")
            if needs[request.url.path.split("/")[1]] not in scope:
                return _error(403, "Request had insufficient authentication scopes.", "insufficientPermissions")
            return await handler(request)

        return answer

    gmail, calendar, drive = "/gmail/v1/users/me", "/calendar/v3", "/drive/v3"
    routes = [
        Route(f"{gmail}/messages", guard(google.list_mail)),
        Route(f"{gmail}/messages/{{mail}}", guard(google.get_mail)),
        Route(f"{gmail}/drafts", guard(google.add_draft), methods=["POST"]),
        Route(f"{gmail}/drafts/send", guard(google.send_draft), methods=["POST"]),
        Route(f"{gmail}/profile", guard(google.get_profile)),
        Route(f"{calendar}/users/me/calendarList", guard(google.list_calendars)),
        Route(f"{calendar}/calendars/{{calendar}}/events", guard(google.list_events)),
        Route(f"{calendar}/calendars/{{calendar}}/events", guard(google.change_events), methods=["POST"]),
        Route(
            f"{calendar}/calendars/{{calendar}}/events/{{event}}",
            guard(google.change_events),
            methods=["GET", "PATCH", "DELETE"],
        ),
        Route(f"{drive}/files", guard(google.list_files)),
        Route(f"{drive}/files/{{file}}", guard(google.get_file)),
        Route(f"{drive}/files/{{file}}/export", guard(google.get_file)),
        Route(f"{drive}/about", guard(google.about)),
        Route("/upload/drive/v3/files", guard(google.upload), methods=["POST"]),
        Route("/o/oauth2/v2/auth", google.authorize),
        Route("/token", google.trade, methods=["POST"]),
    ]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        google.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(Starlette(routes=routes), lifespan="off", log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                await server.serve([listener])
                tasks.cancel_scope.cancel()

            tasks.start_soon(run)
            try:
                yield google
            finally:
                server.should_exit = True


def make_times(start: datetime, length: timedelta = timedelta(hours=1)) -> Row:
    """Returns the beginning and end of an event as Google writes them."""
    return {"start": {"dateTime": start.isoformat()}, "end": {"dateTime": (start + length).isoformat()}}
