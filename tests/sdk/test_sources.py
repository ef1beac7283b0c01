"""Sources of knowledge by the SDK, on the real routes."""

from pathlib import Path

import httpx2
import pytest

from denizen_sdk import ApiError, DenizenClient
from denizen_sdk.knowledge import SourceInfo
from denizen_sdk.wire import SyncStarted
from tests.engine.knowledge.house import write
from tests.site import LOCAL
from tests.web.town import open_town

pytestmark = pytest.mark.anyio


@pytest.mark.proves("S-sdk-client")
async def test_sources_are_listed_and_one_of_them_is_read(tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", {"a.md": "A"})
    async with open_town(tmp_path) as site, site.client(**{"x-api-key": "key-of-olga"}) as owner:
        assert (await owner.post("/api/sources", json={"location": str(notes), "label": "Notes"})).status_code == 201
        transport = httpx2.ASGITransport(site.app)
        async with DenizenClient(LOCAL, "key-of-ada", transport=transport) as client:
            [source] = await client.list_sources()
            assert source == SourceInfo("notes", "folder", "Notes", "docs/notes")
            started = await client.sync_source("notes")
            assert started == SyncStarted("started", started.run, ("notes",))
            with pytest.raises(ApiError) as caught:
                await client.sync_source("gone")
        async with DenizenClient(LOCAL, "key-of-ann", transport=transport) as client:
            with pytest.raises(ApiError) as refused:
                await client.sync_source("notes")
    assert (caught.value.status, refused.value.status) == (404, 403)
