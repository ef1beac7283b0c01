"""The records of the simulated GitHub. `world` changes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

WRITING = {"issues": "write", "pull_requests": "write", "discussions": "write", "metadata": "read", "contents": "read"}
"""The permissions that an App needs."""


@dataclass(slots=True, eq=False)
class User:
    """A person, or the user that an App writes as. `token` is a personal access token."""

    id: int
    login: str
    is_bot: bool = False
    token: str = ""


@dataclass(slots=True, eq=False)
class Hook:
    """A webhook of an App or a repository: its address and the secret that signs it, empty for none."""

    url: str
    secret: str = ""
    content_type: str = "json"


@dataclass(slots=True, eq=False)
class Reaction:
    id: int
    user: User
    content: str


@dataclass(slots=True, eq=False)
class Comment:
    """A comment on an issue, pull request or discussion. In a discussion `parent` is the comment that it answers."""

    id: int
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    reactions: list[Reaction] = field(default_factory=list[Reaction])
    parent: Comment | None = None


@dataclass(slots=True, eq=False)
class ReviewComment:
    """A comment on a line of a change. `root` is the first comment of its thread, None for the first itself."""

    id: int
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    path: str = "src/main.py"
    diff_hunk: str = "@@ -1 +1 @@\n-old\n+new"
    root: ReviewComment | None = None
    reactions: list[Reaction] = field(default_factory=list[Reaction])


@dataclass(slots=True, eq=False)
class Review:
    """A review of a pull request; its text may be empty."""

    id: int
    user: User
    body: str
    created_at: datetime
    updated_at: datetime


@dataclass(slots=True, eq=False)
class Issue:
    """An issue, or a pull request, which has a second id."""

    id: int
    number: int
    user: User
    title: str
    body: str
    created_at: datetime
    updated_at: datetime
    pull_id: int = 0
    labels: tuple[str, ...] = ()
    assignees: tuple[User, ...] = ()
    closed: str = ""
    """Why it is closed: `completed` or `not_planned`; empty while it is open."""
    locked: bool = False
    comments: list[Comment] = field(default_factory=list[Comment])
    reviews: list[Review] = field(default_factory=list[Review])
    review_comments: list[ReviewComment] = field(default_factory=list[ReviewComment])
    reactions: list[Reaction] = field(default_factory=list[Reaction])

    @property
    def is_pull(self) -> bool:
        return self.pull_id > 0


@dataclass(slots=True, eq=False)
class Discussion:
    id: int
    number: int
    user: User
    title: str
    body: str
    created_at: datetime
    updated_at: datetime
    labels: tuple[str, ...] = ()
    comments: list[Comment] = field(default_factory=list[Comment])
    """The comments, including answers to comments."""
    reactions: list[Reaction] = field(default_factory=list[Reaction])


Talk: TypeAlias = "Issue | Discussion"
Words: TypeAlias = "Issue | Discussion | Comment | Review | ReviewComment"


@dataclass(slots=True, eq=False)
class Repository:
    """A repository. `members` has the association of people (OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR); that of others
    is NONE. Requests to a name in `former` are redirected, and so are those to the issues in `transferred`, which have
    a number in another repository now.
    """

    id: int
    owner: str
    name: str
    private: bool = False
    description: str = ""
    default_branch: str = "main"
    members: dict[int, str] = field(default_factory=dict[int, str])
    hooks: list[Hook] = field(default_factory=list[Hook])
    issues: dict[int, Issue] = field(default_factory=dict[int, Issue])
    discussions: dict[int, Discussion] = field(default_factory=dict[int, Discussion])
    former: set[str] = field(default_factory=set[str])
    transferred: dict[int, tuple[Repository, int]] = field(default_factory=dict[int, "tuple[Repository, int]"])

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    def association(self, user: User) -> str:
        return self.members.get(user.id, "NONE")


@dataclass(slots=True, eq=False)
class Installation:
    id: int
    app: App
    repositories: list[Repository] = field(default_factory=list[Repository])


@dataclass(slots=True, eq=False)
class Token:
    """An access token of an installation."""

    text: str
    installation: Installation
    expires_at: datetime


@dataclass(slots=True, eq=False)
class App:
    """A GitHub App with its key pair. It writes as `user`."""

    id: int
    slug: str
    user: User
    private_key: str
    public_key: str
    hook: Hook = field(default_factory=lambda: Hook(""))
    permissions: dict[str, str] = field(default_factory=lambda: dict(WRITING))
    events: tuple[str, ...] = ()
    installations: list[Installation] = field(default_factory=list[Installation])
