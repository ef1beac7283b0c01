"""The section `google`: the account whose mail, calendars and files agents may use."""

from __future__ import annotations

from pydantic import Field

from denizen.app.home.secrets import FileSecrets
from denizen.app.settings.fields import HttpUrl, Secret, Section, Text
from denizen.ports.google import GoogleLogin


class GoogleSection(Section):
    """The Google account of the tools `gmail`, `google_calendar` and `google_drive`. `denizen connect google` writes
    here.
    """

    client_id: Text = Field(default="", description="Id of an OAuth client of Google Cloud, of the type Desktop app.")
    client_secret: Secret = Field(default=None, description="Secret of that client.")
    refresh_token: Secret = Field(default=None, description="The token that the owner of the account gave.")
    api_url: HttpUrl = Field(
        default="", description="Another address for all of Google's, such as that of a proxy; empty: Google's own."
    )

    def build_login(self, secrets: FileSecrets) -> GoogleLogin | None:
        """Returns None without a client and its secret. Raises NeedsAttention for a variable that is not set."""
        if not self.client_id or self.client_secret is None:
            return None
        return GoogleLogin(
            client_id=self.client_id,
            client_secret=secrets.resolve(self.client_secret),
            refresh_token=secrets.resolve(self.refresh_token),
            api_url=self.api_url,
        )
