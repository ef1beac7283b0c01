"""The issue trackers of the accounts on GitHub, for the projects that mirror them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from denizen.app.settings import Settings
from denizen.domain.clock import Clock
from denizen.domain.errors import NeedsAttention
from denizen.domain.ids import AgentName
from denizen.ports.issues import IssueTracker

if TYPE_CHECKING:
    from denizen.adapters.github.issues import GitHubIssues
    from denizen.adapters.github.settings import GitHubAccountSettings


class IssueTrackers:
    """Opens the tracker of each account with the login that is in force. `settings` returns the current ones."""

    def __init__(self, settings: Callable[[], Settings], clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._open: dict[AgentName, tuple[GitHubAccountSettings, GitHubIssues]] = {}

    def find(self, account: AgentName) -> IssueTracker:
        """Raises NeedsAttention where the account has no login."""
        from denizen.adapters.github.issues import GitHubIssues

        login = next((each.account for each in self._settings().github_accounts if each.agent == account), None)
        if login is None:
            raise NeedsAttention(
                f"The GitHub account of '{account}' has no login, so issues are not mirrored.",
                code="mirror_login",
                fix=f"Write app_id and private_key_file, or token, at channels.github.accounts.{account}.",
            )
        known = self._open.get(account)
        if known is None or known[0] != login:
            self._open[account] = known = (login, GitHubIssues(login, self._clock))
        return known[1]

    async def aclose(self) -> None:
        """Closes the connections that are open."""
        opened, self._open = self._open, {}
        for _, tracker in opened.values():
            await tracker.aclose()
