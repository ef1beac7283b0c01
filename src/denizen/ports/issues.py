"""The issues of repositories on a platform that hosts them, and what is kept of those that tasks mirror."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from denizen.domain.issue_mirror import Issue, IssueComment, IssueDraft, IssueLink, LinkKind, MirrorState
from denizen.domain.record import record


@record(kw_only=True)
class IssuePage:
    """A page of issues. `next_page` is the next one, empty on the last; `version` tells the first page from a later
    state of it, in which it `has_changed`.
    """

    issues: Sequence[Issue]
    next_page: str = ""
    version: str = ""
    has_changed: bool = True


class IssueTracker(Protocol):
    """The issues that one account reads and writes. All raise NotFound for what is not there, NotAllowed, InvalidInput
    for what is refused, NeedsAttention for a login that does not work, and Unavailable, with `retry_after_s` where a
    rate limit holds.
    """

    async def list_issues(
        self, repository: str, *, since: datetime | None = None, page: str = "", known: str = ""
    ) -> IssuePage:
        """Returns the issues that changed since then, the earliest change first; without a time those that are open,
        the oldest first. No pull requests.
        """
        ...

    async def get_issue(self, repository: str, number: int) -> Issue:
        """Raises NotFound also for one that has moved to another repository."""
        ...

    async def create_issue(self, repository: str, draft: IssueDraft, *, mark: str) -> Issue: ...

    async def change_issue(self, repository: str, number: int, draft: IssueDraft, *, known: Issue) -> Issue:
        """Changes an issue, known as it is now. An assignee who cannot be one there is left out."""
        ...

    async def list_comments(self, repository: str, *, since: datetime) -> Sequence[IssueComment]:
        """Returns comments that were written or edited since then, the earliest first; of very many the earliest."""
        ...

    async def list_comments_on(self, repository: str, number: int) -> Sequence[IssueComment]:
        """Returns the comments on an issue, the oldest first; of very many the oldest."""
        ...

    async def add_comment(self, repository: str, number: int, text: str, *, mark: str) -> IssueComment: ...

    async def change_comment(self, repository: str, comment_id: str, text: str, *, mark: str) -> IssueComment: ...

    def render(self, text: str) -> str:
        """Returns a text as it stands at the repository once it is written: without commands to other programs, and
        notifying nobody.
        """
        ...


class IssueMirrorRepository(Protocol):
    """The states of mirrors, and what is linked. Part of a unit of work."""

    async def list_states(self) -> Sequence[MirrorState]: ...

    async def put_state(self, state: MirrorState) -> None: ...

    async def find_link(self, mirror: str, kind: LinkKind, *, remote_id: str) -> IssueLink | None: ...

    async def find_local(self, mirror: str, kind: LinkKind, *, local_id: str) -> IssueLink | None: ...

    async def put_link(self, link: IssueLink) -> None:
        """Adds the link, or writes its base anew."""
        ...
