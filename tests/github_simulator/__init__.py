"""A simulator of GitHub on loopback: people and repositories, a server for REST v3 and the GraphQL of discussions, and
webhooks with real signatures.

`open_github` starts it; `api_url` is the address for clients.
"""

from tests.github_simulator.server import GitHubServer, NotReachedError, open_github
from tests.github_simulator.state import App, Comment, Discussion, Hook, Issue, Repository, Review, ReviewComment, User
from tests.github_simulator.world import GitHubWorld

__all__ = [
    "App",
    "Comment",
    "Discussion",
    "GitHubServer",
    "GitHubWorld",
    "Hook",
    "Issue",
    "NotReachedError",
    "Repository",
    "Review",
    "ReviewComment",
    "User",
    "open_github",
]
