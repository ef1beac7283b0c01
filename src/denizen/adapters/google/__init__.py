"""A Google account over Google's REST APIs: consent, mail, calendars and files.

The APIs are spoken to with the HTTP client that Denizen has. Google's own client for Python would bring forty packages
and describe each call by a document that is fetched or shipped (90 MB), for a dozen calls.
"""

from denizen.adapters.google.account import HttpGoogleAccount
from denizen.adapters.google.consent import HttpGoogleConsent

__all__ = ["HttpGoogleAccount", "HttpGoogleConsent"]
