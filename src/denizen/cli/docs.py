"""`denizen docs`: searching documents as agents do, and the index of sources that this needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.home import with_denizen
from denizen.cli.terminal import echo, printable_json
from denizen.domain.errors import InvalidInput
from denizen.domain.ids import AgentName

if TYPE_CHECKING:
    from denizen.app.build import Denizen
    from denizen.ports.documents import IndexedPassage
    from denizen.ports.source import ReadingProgress


MAX_FOUND = 15
"""As for agents and over HTTP."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Search documents as agents do; update the index.

    `denizen sources` says what is read. Everything here may be used while Denizen runs.
    """


@command.command()
@click.argument("query")
@click.option(
    "-a", "--agent", default="", help="The agent whose own files are searched, too.  [default: the default one]"
)
@click.option("--source", "sources", multiple=True, metavar="ID", help="Only in this source; may be repeated.")
@click.option("--guild", default="", metavar="ID", help="Also what is for talk in this Discord server alone.")
@click.option("--limit", default=6, type=click.IntRange(1, MAX_FOUND), show_default=True, help="How many passages.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each passage, a line each.")
@with_denizen
async def search(
    denizen: Denizen, query: str, agent: str, sources: tuple[str, ...], guild: str, limit: int, *, as_json: bool
) -> None:
    """Search the documents as agents do: passages with path and lines, the best first.

    Searched are the sources, `knowledge/` of the home folder and the agent's own files; with --source, sources only.
    Of what is found here, an agent on a small model is given before its answer only what fits the question closely,
    three passages at most.
    """
    query = query.strip()
    if not query:
        fix = 'Say what to look for: denizen docs search "opening hours".'
        raise InvalidInput("The question is empty.", code="field_invalid", fix=fix)
    from denizen.app.knowledge import OwnFiles
    from denizen.builtin_skills.knowledge import add_folder_passages

    asker = AgentName(denizen.queries.get_agent(agent).name)
    folders = OwnFiles(denizen.settings.folders).list_folders(asker)
    await index_documents(denizen)
    found = await denizen.knowledge.search(query, guild=guild, sources=sources, limit=limit)
    if not sources:
        found = await add_folder_passages(found, folders, query)
    for each in found[:limit]:
        echo(printable_json(_fields(each)) if as_json else _shown(each))
    if not found and not as_json:
        is_something = any(folder.list_files() for _, folder in folders)
        is_something = is_something or (await denizen.knowledge.indexing.size()).passages
        echo("Nothing was found." if is_something else NOTHING_THERE)


@command.command()
@click.option("--words-only", is_flag=True, help="Leave the embeddings to `denizen run`.")
@with_denizen
async def index(denizen: Denizen, *, words_only: bool) -> None:
    """Bring the index up to date now: words, and embeddings of all passages that have none yet.

    `denizen run` does this by itself. The small local model takes about 45 ms for the embedding of a full passage.
    """
    from denizen.app.embeddings import describe_embeddings
    from denizen.cli.sync_progress import show_sync_progress
    from denizen.engine.knowledge.index import INDEX

    await index_documents(denizen)
    indexing, told = denizen.knowledge.indexing, dict[str, "ReadingProgress"]()
    if not words_only:
        async with show_sync_progress(lambda: told):
            await indexing.embed_all(lambda progress: told.update({INDEX: progress}))
    size = await indexing.size()
    missing = await indexing.count_without_embedding()
    echo(f"{size.documents} documents with {size.passages} passages are indexed." if size.documents else NOTHING_READ)
    echo(describe_embeddings(denizen.settings, denizen.runtime.current.knowledge.embedder).capitalize() + ".")
    if missing:
        echo(
            f"{missing} passages have no embedding yet; `denizen run` computes them, and so does `denizen docs index`."
        )


NOTHING_THERE = (
    "There are no documents yet. Put files into `knowledge/` of the home folder, or use `denizen sources add` and "
    "`denizen sources sync`."
)
NOTHING_READ = "No source was read yet. `denizen sources add` and `denizen sources sync` come first."


async def index_documents(denizen: Denizen) -> None:
    """The words of what is new in the snapshot, with a bar."""
    from denizen.cli.sync_progress import show_sync_progress
    from denizen.engine.knowledge.index import INDEX

    told: dict[str, ReadingProgress] = {}
    async with show_sync_progress(lambda: told):
        await denizen.knowledge.indexing.catch_up(lambda progress: told.update({INDEX: progress}))


def _shown(found: IndexedPassage) -> str:
    passage = found.passage
    head = f"{found.path}:{passage.first_line}-{passage.last_line}{f'  {passage.title}' if passage.title else ''}"
    return "\n".join([head, *(f"    {line}" for line in passage.text.splitlines()), ""])


def _fields(found: IndexedPassage) -> dict[str, str | int]:
    passage = found.passage
    return {
        "path": found.path,
        "source": found.source_id,
        "title": passage.title,
        "first_line": passage.first_line,
        "last_line": passage.last_line,
        "text": passage.text,
    }
