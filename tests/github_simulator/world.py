"""The world of the simulated GitHub: people, repositories and Apps, and what they do. Webhooks hear of each action.

ana = github.world.add_user("ana")
repository = github.world.add_repository("harbour/boats", owner=ana)
bot = github.world.add_app("denizen", url="http://127.0.0.1:8650/api/webhooks/github", secret="...")
github.world.install(bot, repository)
issue = github.world.open_issue(ana, repository, "It leaks", "Water comes in.")
github.world.comment(ana, issue, "@denizen why?")
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any

from denizen.domain.clock import Clock
from tests.github_simulator.state import (
    App,
    Comment,
    Discussion,
    Hook,
    Installation,
    Issue,
    Reaction,
    Repository,
    Review,
    ReviewComment,
    Talk,
    Token,
    User,
    Words,
)

EVENTS = (
    "issues",
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "discussion",
    "discussion_comment",
)
TOKEN_LIFE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """An event for webhooks. `what` is the comment or review, None for the issue or discussion itself."""

    event: str
    action: str
    repository: Repository
    sender: User
    talk: Talk | None = None
    what: Words | None = None


@dataclass(slots=True)
class GitHubWorld:
    """The state and the actions. The functions in `told` are called with every event."""

    clock: Clock
    users: dict[int, User] = field(default_factory=dict[int, User])
    repositories: list[Repository] = field(default_factory=list[Repository])
    apps: list[App] = field(default_factory=list[App])
    tokens: dict[str, Token] = field(default_factory=dict[str, Token])
    told: list[Callable[[WebhookEvent], None]] = field(default_factory=list[Callable[[WebhookEvent], None]])
    _ids: count[int] = field(default_factory=lambda: count(1001))

    # --- who and where -----------------------------------------------------------------------------------------------

    def add_user(self, login: str, *, is_bot: bool = False) -> User:
        user = User(next(self._ids), login, is_bot, token=f"ghp_{secrets.token_hex(18)}")
        self.users[user.id] = user
        return user

    def add_repository(
        self, full_name: str, *, owner: User, private: bool = False, description: str = ""
    ) -> Repository:
        account, _, name = full_name.partition("/")
        repository = Repository(next(self._ids), account, name, private, description)
        repository.members[owner.id] = "OWNER"
        self.repositories.append(repository)
        return repository

    def add_app(self, slug: str, *, url: str = "", secret: str = "", events: tuple[str, ...] = EVENTS) -> App:
        """Adds an App with a key pair."""
        private, public = _make_keys(slug)
        user = self.add_user(f"{slug}[bot]", is_bot=True)
        app = App(next(self._ids), slug, user, private, public, Hook(url, secret), events=events)
        self.apps.append(app)
        return app

    def install(self, app: App, *repositories: Repository) -> Installation:
        installation = Installation(next(self._ids), app, list(repositories))
        app.installations.append(installation)
        return installation

    def rename(self, repository: Repository, full_name: str) -> None:
        """Renames the repository; its old address redirects to the new one."""
        repository.former.add(repository.full_name)
        repository.owner, _, repository.name = full_name.partition("/")

    def transfer(self, issue: Issue, source: Repository, target: Repository) -> None:
        """Moves an issue to another repository, where it has the next number; its old address redirects there."""
        del source.issues[issue.number]
        former, issue.number = issue.number, self._number(target)
        source.transferred[former] = (target, issue.number)
        target.issues[issue.number] = issue

    def give_token(self, installation: Installation) -> Token:
        token = Token(f"ghs_{secrets.token_hex(18)}", installation, self.clock.now() + TOKEN_LIFE)
        self.tokens[token.text] = token
        return token

    # --- talk --------------------------------------------------------------------------------------------------------

    def open_issue(
        self, user: User, repository: Repository, title: str, body: str = "", *, labels: tuple[str, ...] = ()
    ) -> Issue:
        issue = self._issue(user, repository, title, body, labels)
        self._tell("issues", "opened", repository, user, issue)
        return issue

    def open_pull(
        self, user: User, repository: Repository, title: str, body: str = "", *, labels: tuple[str, ...] = ()
    ) -> Issue:
        pull = self._issue(user, repository, title, body, labels)
        pull.pull_id = next(self._ids)
        self._tell("pull_request", "opened", repository, user, pull)
        return pull

    def open_discussion(self, user: User, repository: Repository, title: str, body: str = "") -> Discussion:
        now = self.clock.now()
        discussion = Discussion(next(self._ids), self._number(repository), user, title, body, now, now)
        repository.discussions[discussion.number] = discussion
        self._tell("discussion", "created", repository, user, discussion)
        return discussion

    def comment(self, user: User, talk: Talk, body: str, *, parent: Comment | None = None) -> Comment:
        """Comments on an issue, pull request or discussion. In a discussion `parent` is the comment to answer."""
        now = self.clock.now()
        comment = Comment(next(self._ids), user, body, now, now, parent=parent)
        talk.comments.append(comment)
        talk.updated_at = now
        event = "discussion_comment" if isinstance(talk, Discussion) else "issue_comment"
        self._tell(event, "created", self.find_repository(talk), user, talk, comment)
        return comment

    def review(self, user: User, pull: Issue, body: str) -> Review:
        now = self.clock.now()
        review = Review(next(self._ids), user, body, now, now)
        pull.reviews.append(review)
        pull.updated_at = now
        self._tell("pull_request_review", "submitted", self.find_repository(pull), user, pull, review)
        return review

    def comment_code(
        self, user: User, pull: Issue, body: str, *, answers: ReviewComment | None = None
    ) -> ReviewComment:
        now = self.clock.now()
        root = (answers.root or answers) if answers else None
        comment = ReviewComment(next(self._ids), user, body, now, now, root=root)
        pull.review_comments.append(comment)
        pull.updated_at = now
        self._tell("pull_request_review_comment", "created", self.find_repository(pull), user, pull, comment)
        return comment

    def edit(self, user: User, talk: Talk, what: Comment | ReviewComment, body: str) -> None:
        what.body, what.updated_at = body, self.clock.now()
        talk.updated_at = what.updated_at
        self._tell(_find_event(talk, what), "edited", self.find_repository(talk), user, talk, what)

    def remove(self, user: User, talk: Talk, what: Comment | ReviewComment) -> None:
        if isinstance(what, Comment):
            talk.comments.remove(what)
        elif isinstance(talk, Issue):
            talk.review_comments.remove(what)
        self._tell(_find_event(talk, what), "deleted", self.find_repository(talk), user, talk, what)

    def react(self, user: User, what: Words, content: str) -> tuple[Reaction, bool]:
        """Returns the reaction and whether it is new: a user has one of each kind."""
        if isinstance(what, Review):
            raise TypeError("a review has no reactions")
        for each in what.reactions:
            if each.user is user and each.content == content:
                return each, False
        reaction = Reaction(next(self._ids), user, content)
        what.reactions.append(reaction)
        return reaction, True

    def label(self, user: User, issue: Issue, *labels: str) -> None:
        self.change_issue(user, issue, "labeled", labels=labels)

    def change_issue(self, user: User, issue: Issue, action: str, **fields: Any) -> None:
        """Sets fields of an issue: `edited`, `closed`, `reopened`, `assigned` and so on."""
        for name, value in fields.items():
            setattr(issue, name, value)
        issue.updated_at = self.clock.now()
        self._tell("issues", action, self.find_repository(issue), user, issue)

    def find_repository(self, talk: Talk) -> Repository:
        for repository in self.repositories:
            if talk in (*repository.issues.values(), *repository.discussions.values()):
                return repository
        raise KeyError(talk.number)

    def _issue(self, user: User, repository: Repository, title: str, body: str, labels: tuple[str, ...]) -> Issue:
        now = self.clock.now()
        issue = Issue(next(self._ids), self._number(repository), user, title, body, now, now, labels=labels)
        repository.issues[issue.number] = issue
        return issue

    def _number(self, repository: Repository) -> int:
        return max((0, *repository.issues, *repository.discussions, *repository.transferred)) + 1

    def _tell(
        self, event: str, action: str, repository: Repository, sender: User, talk: Talk, what: Words | None = None
    ) -> None:
        for tell in self.told:
            tell(WebhookEvent(event, action, repository, sender, talk, what))


@cache
def _make_keys(slug: str) -> tuple[str, str]:
    """Returns a private and a public key, the same for an App within a process, since making them takes a while."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    del slug
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def _find_event(talk: Talk, what: Comment | ReviewComment) -> str:
    if isinstance(what, ReviewComment):
        return "pull_request_review_comment"
    return "discussion_comment" if isinstance(talk, Discussion) else "issue_comment"
