"""Knowledge as clients see it: sources, reading them, and the snapshots that are made of what was read.

Plain dataclasses, as in `records`; may be imported from `wire`. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source of knowledge. `folder` is where it lies in the shell; `synced_at` is None before its first reading.
    From `location` on it is told to owners and admins only. `left_out` names the first of the `skipped` files, each
    with why it was not kept; `error` says why the source could not be read the last time. With `has_webhook` the
    configuration has a secret with which it is read (`call_webhook`).
    """

    id: str
    kind: str
    label: str = ""
    folder: str = ""
    files: int = 0
    documents: int = 0
    synced_at: str | None = None
    location: str = ""
    branch: str = ""
    content_path: str = ""
    output_path: str = ""
    readme_only: bool = False
    max_videos: int = 0
    sync_every_minutes: int = 0
    revision: str = ""
    skipped: int = 0
    left_out: tuple[str, ...] = ()
    error: str = ""
    has_webhook: bool = False


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """What may be said about a source besides its location; None leaves it as it is, or to the server."""

    kind: str | None = None
    label: str | None = None
    branch: str | None = None
    content_path: str | None = None
    output_path: str | None = None
    readme_only: bool | None = None
    max_videos: int | None = None
    sync_every_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class RepositoryInfo:
    """A repository that can become a source, by its `location` and `branch`."""

    name: str
    location: str
    branch: str
    private: bool = False
    description: str = ""
    updated_at: str = ""


@dataclass(frozen=True, slots=True)
class StartedSync:
    """`status` is "started"; `run` is the id of the sync, and `sources` what it reads."""

    status: str
    run: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """What is being done with a source, and how much of how much (`total` 0 when that is not known)."""

    stage: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class SyncInfo:
    """One sync. `status` is running, done, partial (some sources could not be read; of those the last good reading
    stays) or failed, and it is over when `ended_at` is there. `failed` maps sources (and `(remote)`, to which snapshots
    are pushed) to what was wrong, `skipped` those that were left as they are to why; `progress` is of each source that
    the asked process has begun to read. `snapshot` is what was current when it ended.
    """

    id: str
    sources: tuple[str, ...]
    status: str
    started_at: str
    ended_at: str | None = None
    snapshot: str = ""
    changed: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict[str, str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    progress: dict[str, SyncProgress] = field(default_factory=dict[str, SyncProgress])


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """One source of a sync went on."""

    source: str
    stage: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class StartedSnapshot:
    """`status` is "started"; `run` is the id of the sync that makes the snapshot, where the server tells it."""

    status: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """Which snapshot is used, and which is the latest; empty where there is none. With `needs_sync` something should be
    read, and `why` says what.
    """

    current: str
    latest: str
    latest_at: str | None
    last_sync_at: str | None
    needs_sync: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotRemoteInfo:
    """Where snapshots are pushed to; an empty repository means nowhere. Without `allow_existing` one that is not
    Denizen's own is refused.
    """

    repository: str
    branch: str = "main"
    allow_existing: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotRemoteChange(SnapshotRemoteInfo):
    """`run` is the sync that publishes anew; empty when nothing changed, or there is nothing to read."""

    run: str = ""


@dataclass(frozen=True, slots=True)
class PublishedSnapshot:
    """`current` is the snapshot that is used now; empty when nothing was read yet."""

    current: str
