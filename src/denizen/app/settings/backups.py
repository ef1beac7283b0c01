"""The section `backups`: backups that the running server makes at set times."""

from __future__ import annotations

import re
from typing import Self

from pydantic import Field, field_validator, model_validator

from denizen.app.settings.fields import Section, SomeText, Text, Whole, Zone, refuse
from denizen.app.settings.schedules import OptionalCron

_RECIPIENT = re.compile(r"age1[0-9a-z]{20,}|ssh-(ed25519|rsa) \S+( .*)?")


class BackupsSection(Section):
    """Backups that the server makes while it runs. `denizen backup` makes one at any time, with its own options."""

    schedule: OptionalCron = Field(
        default="",
        description="When: minute, hour, day, month and weekday, or a name such as `@daily`; empty: none are made. The "
        "first is made at once, and one that was missed when the server runs again.",
    )
    zone: Zone = Field(default="UTC", description="Time zone of the expression.")
    folder: SomeText = Field(
        default="backups",
        description="Where they go, relative to the home folder. One elsewhere, such as on another disk, must exist.",
    )
    keep: Whole = Field(
        default=7,
        ge=1,
        le=1000,
        description="How many are kept of those that were made by this schedule. Older ones are removed when a new one "
        "was checked.",
    )
    encrypt_to: Text = Field(
        default="", description="Public key of age or ssh for which they are encrypted; empty: they are not."
    )
    with_secrets: bool = Field(
        default=False, description="Whether `secrets.env` and private keys are in them; only with `encrypt_to`."
    )

    @field_validator("encrypt_to")
    @classmethod
    def _is_public_key(cls, value: str) -> str:
        if value and not _RECIPIENT.fullmatch(value):
            fix = "Make a pair with `age-keygen -o KEYFILE`, and write the public key, which begins with age1."
            raise refuse("this is no public key of age or ssh.", fix)
        return value

    @model_validator(mode="after")
    def _hides_secrets(self) -> Self:
        if self.with_secrets and not self.encrypt_to:
            raise refuse("secrets go into encrypted backups only.", "Set encrypt_to, too.", key="with_secrets")
        return self
