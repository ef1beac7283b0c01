"""`denizen run`: everything, until it is told to stop."""

from __future__ import annotations

from pathlib import Path

import anyio
import click


@click.command()
@click.option("--host", default=None, help="Address to listen on.  [default: server.host, 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Port; 0 takes a free one.  [default: 8642]")
@click.pass_obj
def command(home: Path, host: str | None, port: int | None) -> None:
    """Start everything: agents, the chat page, the OpenAI-compatible API. Stop with Ctrl-C.

    The configuration is watched: a change takes effect at once, or the old one stays and the log says why.
    """
    from denizen.app.memory import share_heap

    share_heap()
    anyio.run(_run, home, host, port, backend_options={"use_uvloop": True})


async def _run(home: Path, host: str | None, port: int | None) -> None:
    from denizen.app.build import Opening, open_denizen
    from denizen.app.logging import configure_logging
    from denizen.app.serve import serve
    from denizen.cli.log import choose_level
    from denizen.cli.progress import show_progress

    async with open_denizen(home, Opening(rescue=True, report=show_progress)) as denizen:
        settings = denizen.settings
        configure_logging(
            level=choose_level(settings.logging.level),
            style=settings.logging.format,
            mask=denizen.mask,
            file=settings.log_file,
        )
        for warning in settings.warnings:
            click.echo(f"warning: {warning}", err=True)
        await serve(
            denizen,
            host=settings.server.host if host is None else host,
            port=settings.server.port if port is None else port,
            on_ready=lambda url: click.echo(f"Denizen is ready: {url}", err=True),
        )
    click.echo("Stopped.", err=True)
