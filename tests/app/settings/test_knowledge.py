"""How sources are read, from the configuration: keys and secrets are references, and what is not there is off."""

from __future__ import annotations

import pytest

from denizen.app.knowledge import read_video_access, read_webhooks
from denizen.domain.errors import NeedsAttention
from denizen.domain.proposal import LearningPolicy
from denizen.domain.snapshot import NOWHERE, RemoteRepository
from denizen.domain.video import VideoAccess
from tests.app.home_folder import Home

TEXT = """
knowledge:
  youtube: {api_key: "${YOUTUBE_API_KEY}", languages: [de, en]}
  webhooks: {handbook: "${HANDBOOK_SECRET}", other: "${OTHER:-}"}
  remote: {repository: nuxt/docs, branch: kept}
"""
SECRETS = {"YOUTUBE_API_KEY": "AIza-of-the-harbour", "HANDBOOK_SECRET": "a-secret-that-is-long"}


def test_channels_webhooks_and_the_remote_are_read(home: Home) -> None:
    settings = home.using(SECRETS).load(TEXT)
    access = read_video_access(settings)
    assert access == VideoAccess("AIza-of-the-harbour", languages=("de", "en"))
    assert "AIza" not in repr(access) + repr(settings.config.knowledge)
    assert read_webhooks(settings) == {"handbook": "a-secret-that-is-long"}
    assert settings.config.knowledge.remote.remote == RemoteRepository("https://github.com/nuxt/docs.git", "kept")
    assert settings.secrets.mask("see a-secret-that-is-long and AIza-of-the-harbour") == "see *** and ***"


def test_by_default_there_is_no_access_no_webhook_and_no_remote(home: Home) -> None:
    settings = home.load("")
    assert (read_video_access(settings), read_webhooks(settings)) == (None, {})
    assert settings.config.knowledge.remote.remote == NOWHERE
    assert read_video_access(home.load('knowledge: {youtube: {api_key: "${NO_KEY:-}"}}')) is None


def test_a_secret_that_could_be_guessed_is_refused_without_being_repeated(home: Home) -> None:
    settings = home.using(SECRETS | {"HANDBOOK_SECRET": "heron"}).load(TEXT)
    with pytest.raises(NeedsAttention) as refused:
        read_webhooks(settings)
    assert refused.value.code == "secret_short" and "heron" not in refused.value.explain()


@pytest.mark.parametrize(
    "text",
    [
        "knowledge: {youtube: {api_key: AIza-in-the-file-itself}}",
        "knowledge: {webhooks: {handbook: a-secret-in-the-file}}",
    ],
)
def test_a_secret_in_the_file_itself_is_refused(home: Home, text: str) -> None:
    problem = home.refuse(text).explain()
    assert "in-the-file" not in problem and "${" in problem


def test_learning_is_off_until_it_is_switched_on_and_then_for_owners_and_these_roles(home: Home) -> None:
    assert home.load("").config.knowledge.learning.policy == LearningPolicy()
    text = "knowledge: {learning: {enabled: true, emoji: '<:learn:12>', roles: [810]}}"
    policy = home.load(text).config.knowledge.learning.policy
    assert policy == LearningPolicy(enabled=True, emoji="<:learn:12>", roles=frozenset({"810"}))


@pytest.mark.parametrize("emoji", ["", "✅", "❌", "books"])
def test_an_emoji_that_means_something_else_is_refused(home: Home, emoji: str) -> None:
    assert "emoji" in home.refuse(f"knowledge: {{learning: {{emoji: '{emoji}'}}}}").explain()
