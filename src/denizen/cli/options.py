"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from denizen.app.model_choice import KINDS, ModelChoice


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --provider, --model, --base-url and --api-key-env; the command receives them as `choice`."""

    @click.option("--provider", type=click.Choice(KINDS), metavar="KIND", help=f"Kind of provider: {', '.join(KINDS)}.")
    @click.option("--model", default="", help="The provider's name of the model, or a configured alias.")
    @click.option("--base-url", default="", help="Address of the server, for example http://127.0.0.1:11434/v1.")
    @click.option("--api-key-env", default="", metavar="VAR", help="Environment variable that holds the key.")
    @functools.wraps(command)
    def with_choice(
        *args: object, provider: str | None, model: str, base_url: str, api_key_env: str, **kwargs: object
    ) -> object:
        choice = ModelChoice(provider or "", model, base_url, api_key_env)
        choice.check()
        return command(*args, choice=choice, **kwargs)

    return with_choice
