"""`HttpGoogleAccount`: one account with its services, which share an access token."""

from __future__ import annotations

from collections.abc import Collection

from denizen.adapters.google.calendar import RestGoogleCalendars
from denizen.adapters.google.client import GoogleClient
from denizen.adapters.google.drive import RestGoogleDrive
from denizen.adapters.google.gmail import RestGmail
from denizen.domain.clock import Clock
from denizen.ports.google import GoogleLogin, GoogleService


class HttpGoogleAccount:
    """Implements `ports.google.GoogleAccount`."""

    def __init__(self, login: GoogleLogin, clock: Clock) -> None:
        client = GoogleClient(login, clock)
        self.gmail = RestGmail(client, clock)
        self.calendars = RestGoogleCalendars(client)
        self.drive = RestGoogleDrive(client)

    async def check(self, services: Collection[GoogleService]) -> str:
        address = ""
        if GoogleService.GMAIL in services:
            address = await self.gmail.find_address()
        if GoogleService.DRIVE in services:
            address = await self.drive.find_address() or address
        if GoogleService.CALENDAR in services:
            calendars = await self.calendars.list_calendars()
            address = address or next((each.id for each in calendars if each.is_default), "")
        return address
