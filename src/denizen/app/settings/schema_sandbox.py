"""The shape of `sandbox`: the read-only shell over the knowledge folders (inventory 2.5)."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from denizen.app.settings.fields import Number, Section, Whole, refuse


class SandboxSection(Section):
    """What the tools `bash` and `bash_batch` and `denizen shell` may use up. What they may run is not configured: it is
    one fixed list.
    """

    enabled: bool = Field(
        default=True,
        description="Whether agents have the tools `bash` and `bash_batch`, where there are knowledge folders and the "
        "system can shut programs in.",
    )
    workers: Whole = Field(
        default=2, ge=1, le=32, description="How many lines may run at the same time; each worker takes about 5 MB."
    )
    timeout_s: Number = Field(default=10.0, ge=0.1, le=60, description="How long one command may run, in seconds.")
    batch_timeout_s: Number = Field(
        default=30.0, ge=0.1, le=100, description="How long all commands of one call may run together, in seconds."
    )
    memory_mb: Whole = Field(
        default=512, ge=128, le=16_384, description="How much memory each program of a line may take, in megabytes."
    )

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        if self.batch_timeout_s < self.timeout_s:
            raise refuse("is less than one command may take.", "Raise it, or lower timeout_s.", key="batch_timeout_s")
        return self
