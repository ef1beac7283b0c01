"""Denizen on a Discord that is simulated in the process of the test: a guild with people and bots, and `denizen run`
processes on a home folder that are started, stopped and killed there.

    async with open_deployment(home, provider) as deployment:
        deployment.configure()
        async with deployment.run() as denizen:
            question = deployment.ask(deployment.ana, "hello")
            await deployment.until(lambda: deployment.said() == ["Hello, Ana."])
            await denizen.kill()

Nothing sleeps: everything is waited for, and what is waited for in vain is shown with the transcript and the logs.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio import to_thread

from denizen.domain.clock import Clock
from denizen.testing.discord import DiscordServer, SimApplication, SimChannel, SimMessage, SimUser, open_discord
from denizen.testing.discord.fixtures import build_discord_fixture
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.interactions import SimInteraction
from denizen.testing.discord.world.world import SimWorld
from denizen.testing.model_server import ModelAnswer
from tests.e2e.deployment import SETTLED, Denizen, Deployment
from tests.e2e.home import Home
from tests.e2e.provider import HeldAnswer, Provider
from tests.timing import HANG_LIMIT_S

CONFIG = """\
models:
  providers:
    local: {{kind: openai-compatible, base_url: "{url}"{key}}}{providers}
  aliases: {{balanced: local/scripted{aliases}}}
  overrides: {{{overrides}}}
default_agent: ada
agents: {{{agents}}}
channels:
  discord:
    accounts: {{{accounts}}}
    preview: {preview}
{conduct}{rest}"""


@dataclass(slots=True)
class DiscordDeployment(Deployment):
    """Ana owns the guild, Ben is in it; there is one open channel and one bot, Ada, of the agent `ada`."""

    discord: DiscordServer
    provider: Provider
    home: Home
    guild: SimGuild
    general: SimChannel
    ana: SimUser
    ben: SimUser
    ada: SimApplication
    denizens: list[Denizen] = field(default_factory=list[Denizen])

    @property
    def simulator(self) -> DiscordServer:
        return self.discord

    @property
    def world(self) -> SimWorld:
        return self.discord.world

    # --- the configuration -------------------------------------------------------------------------------------------

    def configure(
        self,
        *,
        accounts: Mapping[str, str] | None = None,
        conduct: Sequence[str] = (),
        preview: bool = False,
        agents: Mapping[str, str] | None = None,
        providers: Mapping[str, str] | None = None,
        keys: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        overrides: str = "",
        rest: str = "",
        home: Home | None = None,
    ) -> None:
        """Writes `denizen.yaml` and `secrets.env`, each at once.

        `accounts` maps agents to tokens (only Ada by default), `conduct` are lines of `channels.discord`, `agents` maps
        an agent to the inside of its section, `providers` a further provider to its URL, `keys` a provider (`local`
        among them) to its secret, `aliases` a further alias to its model; `overrides` is the inside of
        `models.overrides`. A busy machine may be so slow that an answer has a status message: without `preview` none
        has.
        """
        home = home or self.home
        tokens = {"ada": self.ada.token} if accounts is None else accounts
        secrets = {f"{name.upper()}_KEY": key for name, key in (keys or {}).items()}
        references = {name: f', api_key: "${{{name.upper()}_KEY}}"' for name in keys or {}}
        text = CONFIG.format(
            url=self.provider.server.openai_url,
            key=references.get("local", ""),
            providers="".join(
                f'\n    {name}: {{kind: openai-compatible, base_url: "{url}"{references.get(name, "")}}}'
                for name, url in (providers or {}).items()
            ),
            aliases="".join(f", {alias}: {model}" for alias, model in (aliases or {}).items()),
            overrides=overrides,
            agents=", ".join(
                f"{name}: {{{(agents or {}).get(name, '')}}}" for name in {"ada": "", **tokens, **(agents or {})}
            ),
            accounts=", ".join(f'{name}: "${{{_variable(name)}}}"' for name in tokens),
            preview=str(preview).lower(),
            conduct="".join(f"    {line}\n" for line in conduct),
            rest=rest,
        )
        self.write_tokens(tokens, secrets, home=home)
        _replace(home, "denizen.yaml", text)

    def write_tokens(
        self, tokens: Mapping[str, str], others: Mapping[str, str] | None = None, *, home: Home | None = None
    ) -> None:
        """`others` are secrets besides the tokens, by variable."""
        values = {_variable(name): token for name, token in tokens.items()} | dict(others or {})
        lines = [f"{name}={value}\n" for name, value in values.items()]
        _replace(home or self.home, "secrets.env", "".join(lines))

    def make_home(self, name: str) -> Home:
        """Another home folder, on the same Discord."""
        return Home(self.home.folder.with_name(name), dict(self.home.variables))

    def hold(self, text: str) -> HeldAnswer:
        """An answer of the model that waits for `release`."""
        return self.provider.hold(ModelAnswer(text=text))

    # --- processes ---------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def run(self, home: Home | None = None, *, ready: int | None = 1) -> AsyncGenerator[Denizen]:
        """A `denizen run`, once so many of its accounts are ready; it is dead at the end of the block."""
        serve = (home or self.home).serve
        denizen = Denizen(await to_thread.run_sync(serve))
        self.denizens.append(denizen)
        try:
            if ready:
                await self.until(lambda: len(denizen.lines("account ready")) >= ready)
            yield denizen
        finally:
            with anyio.CancelScope(shield=True):
                await denizen.kill()

    # --- people and what they see ------------------------------------------------------------------------------------

    def ask(
        self, who: SimUser, text: str, where: SimChannel | None = None, *, of: SimApplication | None = None
    ) -> SimMessage:
        """Somebody mentions Ada, or the bot of that application."""
        return self.world.say(who, where or self.general, f"{(of or self.ada).mention} {text}")

    def posts(self, where: SimChannel | None = None, *, by: SimApplication | None = None) -> list[SimMessage]:
        """What Ada, or another bot, has in a channel now."""
        author = (by or self.ada).user
        return [message for message in (where or self.general).messages if message.author is author]

    def said(self, where: SimChannel | None = None, *, by: SimApplication | None = None) -> list[str]:
        return [message.content for message in self.posts(where, by=by)]

    async def find_card(self) -> SimMessage:
        """Returns the card that asks for an approval, once it is there."""
        await self.until(lambda: any("Approval needed" in text for text in self.said()))
        return next(post for post in self.posts() if "Approval needed" in post.content)

    async def press(self, who: SimUser, message: SimMessage, label: str) -> SimInteraction:
        """Presses the button with that label."""
        buttons = [each for row in message.body.components for each in row["components"]]
        custom_id = next(each["custom_id"] for each in buttons if each["label"] == label)
        used = await self.world.press(who, message, custom_id, wait_s=HANG_LIMIT_S)
        assert used.acknowledged
        return used

    async def run_command(self, who: SimUser, name: str, /, **options: str) -> SimMessage:
        """Returns the answer to a slash command in the open channel."""
        used = await self.world.run_command(who, self.general, name, options, wait_s=HANG_LIMIT_S)
        return await used.until_answered(HANG_LIMIT_S)

    async def settle(self, where: SimChannel | None = None, *, by: SimApplication | None = None) -> list[str]:
        """Everything that was said there before is decided and answered: a last question has its answer. Texts before
        that answer are returned.
        """
        self.script(SETTLED)
        self.ask(self.ben, "was that all?", where, of=by)
        await self.until(lambda: SETTLED in self.said(where, by=by))
        *earlier, last = self.said(where, by=by)
        assert last == SETTLED
        return earlier


@asynccontextmanager
async def open_deployment(
    home: Home, provider: Provider, *, port: int = 0, host: str = "127.0.0.1", clock: Clock | None = None
) -> AsyncGenerator[DiscordDeployment]:
    """A Discord with a small world, and a home that is pointed at it."""
    async with open_discord(port, host=host, clock=clock) as discord:
        small = build_discord_fixture(discord)
        home.variables |= point_at(discord.api_url, discord.gateway_url)
        yield DiscordDeployment(discord, provider, home, small.guild, small.general, small.ana, small.ben, small.ada)


def point_at(api_url: str, gateway_url: str) -> dict[str, str]:
    return {"DENIZEN_DISCORD_API_URL": api_url, "DENIZEN_DISCORD_GATEWAY_URL": gateway_url}


def _variable(agent: str) -> str:
    return f"{agent.upper()}_TOKEN"


def _replace(home: Home, name: str, text: str) -> None:
    """Whoever reads it meanwhile sees the old text or the new one."""
    home.folder.mkdir(exist_ok=True)
    draft = home.folder / f".{name}.draft"
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o600)
    os.replace(draft, home.folder / name)  # noqa: PTH105 - as an editor saves
