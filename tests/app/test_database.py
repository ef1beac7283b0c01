"""The database that a home folder is opened on."""

from __future__ import annotations

import pytest

from tests.app.home_folder import LAB, Home, open_home

pytest_plugins = ["tests.postgres"]


@pytest.mark.anyio
@pytest.mark.xdist_group("postgres")
@pytest.mark.proves("V5")
@pytest.mark.parametrize(("chosen", "most"), [("", 10), (", max_connections: 3", 3)])
async def test_a_home_on_postgres_has_ten_connections_or_as_many_as_it_says(
    home: Home, postgres_url: str, monkeypatch: pytest.MonkeyPatch, chosen: str, most: int
) -> None:
    from tests.postgres import count_connections

    monkeypatch.setenv("DATABASE_URL", postgres_url)
    async with open_home(home, LAB + f"store: {{url: '${{DATABASE_URL}}'{chosen}}}\n") as denizen:
        assert not (home.path / "denizen.db").exists()
        assert await count_connections(denizen.services.store, postgres_url, most) == most
