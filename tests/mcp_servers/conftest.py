from collections.abc import AsyncGenerator

import pytest

from tests.mcp_servers.vendor_simulator import Vendor, open_vendor


@pytest.fixture
async def vendor() -> AsyncGenerator[Vendor]:
    async with open_vendor() as running:
        yield running
