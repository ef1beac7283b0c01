"""The section `projects`: which repository a project mirrors, with whose account, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName
from denizen.domain.issue_mirror import IssueMirror
from tests.app.home_folder import Home

GITHUB = """\
channels:
  github:
    repositories: [harbour/*]
    accounts: {denizen: "${TOKEN}"}
"""


def test_a_project_mirrors_a_repository_inwards_unless_it_says_both(home: Home) -> None:
    text = f"{GITHUB}projects:\n  Boats: {{github: {{repository: harbour/boats}}}}\n"
    [mirror] = home.load(text, TOKEN="t").issue_mirrors
    assert mirror == IssueMirror(
        project="Boats", platform="github", repository="harbour/boats", account=AgentName("denizen")
    )
    more = "readers: everybody, github: {repository: harbour/Boats, direction: both, account: denizen, every: 60}"
    [both] = home.load(f"{GITHUB}projects:\n  Boats: {{{more}}}\n", TOKEN="t").issue_mirrors
    assert (both.goes_out, both.for_everybody, both.every) == (True, True, timedelta(minutes=1))
    assert both.key == mirror.key
    assert home.load("").issue_mirrors == ()
    assert home.load(text.replace("github:\n", "github:\n    enabled: false\n", 1), TOKEN="t").issue_mirrors == ()


@pytest.mark.parametrize(
    ("projects", "path", "message"),
    [
        ("Boats: {github: {repository: harbour/*}}", "projects.Boats.github.repository", "one repository"),
        ("Boats: {github: {repository: boats}}", "projects.Boats.github.repository", "not a repository"),
        ("Boats: {github: {repository: sea/boats}}", "projects.Boats.github.repository", "does not work in"),
        ("Boats: {github: {repository: harbour/a, account: ada}}", "projects.Boats.github.account", "no such GitHub"),
        ("Boats: {github: {repository: harbour/a, direction: out}}", "projects.Boats.github.direction", ""),
        (
            "{Boats: {github: {repository: harbour/a}}, Ships: {github: {repository: harbour/A}}}",
            "projects.Ships.github.repository",
            "'Boats' mirrors it already",
        ),
    ],
)
def test_what_cannot_be_mirrored_is_refused(home: Home, projects: str, path: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        home.load(f"{GITHUB}projects:\n  {projects}\n", TOKEN="t")
    problem, *_ = cast("list[Any]", raised.value.context["problems"])
    assert problem["path"] == path
    assert message in problem["message"]
