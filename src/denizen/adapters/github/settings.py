"""The settings of an account: the server, the login, and the repositories. Records only.

The composition root fills them from `channels.github`; `account` and `check` read them.
"""

from __future__ import annotations

from dataclasses import field
from fnmatch import fnmatchcase

from denizen.domain.ids import AgentName
from denizen.domain.record import record

PLATFORM = "github"

API_URL = "https://api.github.com"
BODY_CHARS = 65_536
"""GitHub's limit for one comment."""


@record
class GitHubAccountSettings:
    """The settings of one login of one agent: an App by `app_id` and `private_key` (PEM), or a user by `token`.
    `key_problem` says why there is no key.

    `repositories` are patterns such as `owner/*`; none admits all that the login can read. `rescan_s` is how often
    the account looks for messages whose webhook never came; 0 looks only at the start.
    """

    agent: AgentName
    api_url: str = API_URL
    app_id: str = ""
    private_key: str = field(default="", repr=False)
    key_problem: str = ""
    token: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)
    repositories: tuple[str, ...] = ()
    reply_to_new_issues: bool = False
    rescan_s: float = 900.0

    @property
    def is_app(self) -> bool:
        return bool(self.app_id)

    @property
    def setting(self) -> str:
        """The config key of the account, for people."""
        return f"channels.github.accounts.{self.agent}"

    def admits(self, repository: str) -> bool:
        """Whether the account answers in the repository `owner/name`."""
        name = repository.lower()
        return not self.repositories or any(fnmatchcase(name, pattern.lower()) for pattern in self.repositories)
