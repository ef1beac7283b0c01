"""Calendars of a server that speaks CalDAV, such as Nextcloud, Fastmail, iCloud or Radicale.

The protocol is spoken with the HTTP client that Denizen has: the library `caldav` brings an HTTP stack of its own that
takes the place of urllib3 for all other packages. Events are read and written by icalendar, and recurring ones expanded
by dateutil; both are loaded with the first event.
"""

from denizen.adapters.caldav.account import HttpCalDavCalendars

__all__ = ["HttpCalDavCalendars"]
