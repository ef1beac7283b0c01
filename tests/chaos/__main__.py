"""`python -m tests.chaos [NAME ...]`: faults, what is expected of Denizen and what is observed, as a table."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import anyio
import click

from tests.chaos.scenarios import SCENARIOS, ChaosRun, Outcome


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(SCENARIOS)))
@click.option("--seed", default=1, show_default=True, help="For whatever happens at random.")
@click.option("--scale", default=1.0, show_default=True, help="Multiplies how long or how often each fault happens.")
@click.option("--kills", type=click.IntRange(min=1), help="How many faults there are, in scenarios that count them.")
@click.option("--posts", type=click.IntRange(min=1), help="How many posts there are, in scenarios that count them.")
@click.option("--logs", type=click.Path(path_type=Path), help="Keep transcripts and logs below this folder.")
def main(
    names: tuple[str, ...], seed: int, scale: float, kills: int | None, posts: int | None, logs: Path | None
) -> None:
    """Faults of everything that Denizen stands on, one after another; all of them without NAMES.

    \b
    python -m tests.chaos kill-at-random --scale 10
    python -m tests.chaos fleet --kills 300
    python -m tests.chaos upgrade --posts 1000000 --kills 20
    """
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # the simulators write to processes that are gone
    outcomes: list[Outcome] = []
    for name in names or SCENARIOS:
        click.echo(f"{name} ...", err=True)
        outcome = anyio.run(SCENARIOS[name], ChaosRun(seed, scale, logs and logs / name, kills, posts))
        click.echo(f"  {outcome.observed}", err=True)
        outcomes.append(outcome)
    click.echo(f"\n| fault (seed {seed}) | expected | observed | holds |\n|---|---|---|---|")
    for outcome in outcomes:
        verdict = "yes" if outcome.holds else "**no**"
        click.echo(f"| {outcome.fault} | {outcome.expected} | {outcome.observed} | {verdict} |")
    sys.exit(not all(outcome.holds for outcome in outcomes))


if __name__ == "__main__":
    main()
