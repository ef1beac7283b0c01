"""A bot with commands, buttons, selects and a modal."""

from __future__ import annotations

import anyio
import discord
from discord import app_commands

from tests.testing.discord.bots import Bot


class InteractionBot(Bot):
    """Offers one of each."""

    async def setup_hook(self) -> None:
        self.gate = anyio.Event()
        self.idle: list[discord.Interaction] = []
        tree = self.tree

        @tree.command(description="Answers at once.")
        async def echo(interaction: discord.Interaction, text: str, to: discord.Member | None = None) -> None:
            await interaction.response.send_message(f"{text} {to.id if to else ''}".strip())

        @tree.command(description="Thinks first.")
        async def think(interaction: discord.Interaction, hidden: bool = False) -> None:
            await interaction.response.defer(ephemeral=hidden, thinking=True)
            await self.gate.wait()
            await interaction.edit_original_response(content="thought")
            await interaction.followup.send("and another thing", ephemeral=hidden)

        @tree.command(description="Thinks, and follows up.")
        async def follow(interaction: discord.Interaction) -> None:
            await interaction.response.defer()
            await interaction.followup.send("first")
            await interaction.followup.send("second")
            await interaction.delete_original_response()

        @tree.command(description="Does nothing.")
        @app_commands.default_permissions(administrator=True)
        async def idle(interaction: discord.Interaction) -> None:
            self.idle.append(interaction)

        @tree.command(description="Asks for a name.")
        async def ask(interaction: discord.Interaction) -> None:
            await interaction.response.send_modal(Name())

        @tree.command(description="Shows buttons.")
        async def choose(interaction: discord.Interaction) -> None:
            await interaction.response.send_message("choose", view=Choice())

        @tree.command(description="Completes.")
        async def fruit(interaction: discord.Interaction, name: str) -> None:
            await interaction.response.send_message(name)

        @fruit.autocomplete("name")
        async def complete(interaction: discord.Interaction, current: str) -> list[app_commands.Choice[str]]:
            found = [each for each in ("apple", "apricot", "pear") if each.startswith(current)]
            return [app_commands.Choice(name=each.title(), value=each) for each in found]

        memory = app_commands.Group(name="memory", description="What is known.")

        @memory.command(description="Forgets.")
        async def forget(interaction: discord.Interaction, count: int) -> None:
            await interaction.response.send_message(f"forgot {count}", ephemeral=True)

        tree.add_command(memory)
        await tree.sync()


class Name(discord.ui.Modal, title="Name"):
    name = discord.ui.TextInput[discord.ui.View](label="Name", custom_id="name", max_length=5)

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message(f"hello {self.name.value}")


class Choice(discord.ui.View):
    def __init__(self) -> None:
        super().__init__(timeout=None)

    @discord.ui.button(label="Yes", custom_id="yes")
    async def yes(self, interaction: discord.Interaction, button: discord.ui.Button[Choice]) -> None:
        button.disabled = True
        await interaction.response.edit_message(content=f"{interaction.user.name} said yes", view=self)

    @discord.ui.select(cls=discord.ui.UserSelect, custom_id="who", max_values=2)
    async def who(self, interaction: discord.Interaction, select: discord.ui.UserSelect[Choice]) -> None:
        await interaction.response.defer()
        await interaction.followup.send(" ".join(each.name for each in select.values))
