"""GitHub, simulated on loopback: a world of people and repositories, a server that speaks REST v3 and the GraphQL of
discussions, and webhooks with real signatures.

For tests of whatever talks to GitHub. `open_github` starts one; a client is pointed at it by `api_url`.
"""

from tests.github_simulator.server import GitHubServer, NotReachedError, open_github
from tests.github_simulator.state import (
    App,
    Comment,
    Discussion,
    Hook,
    Issue,
    Repository,
    Review,
    ReviewComment,
    User,
)
from tests.github_simulator.world import World

__all__ = [
    "App",
    "Comment",
    "Discussion",
    "GitHubServer",
    "Hook",
    "Issue",
    "NotReachedError",
    "Repository",
    "Review",
    "ReviewComment",
    "User",
    "World",
    "open_github",
]
