"""Progress of long work. The caller shows a bar, a log line or nothing.

Reports are always made in the event loop's thread, also by work that runs in a worker thread.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from anyio import from_thread, to_thread

from denizen.domain.record import record

T = TypeVar("T")


@record
class LoadProgress:
    """The work that is done, and how many bytes of how many (None: not known)."""

    doing: str
    done_bytes: int = 0
    total_bytes: int | None = None


ReportLoadProgress: TypeAlias = Callable[[LoadProgress], None]
Tick: TypeAlias = Callable[[int], None]


def ignore_progress(_progress: LoadProgress) -> None:
    """Ignores progress, for callers that show none."""


async def run_in_thread(work: Callable[[Tick], T], doing: str, total_bytes: int, report: ReportLoadProgress) -> T:
    """Runs blocking `work` in a thread. It calls its tick with the bytes done; that reports, and obeys cancellation."""

    def tick(done_bytes: int) -> None:
        from_thread.check_cancelled()
        from_thread.run_sync(report, LoadProgress(doing, done_bytes, total_bytes))

    return await to_thread.run_sync(work, tick)
