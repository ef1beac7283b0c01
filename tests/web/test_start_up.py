"""What the web costs before the first request."""

import subprocess
import sys

HEAVY = [
    "httpx2",
    "jinja2",
    "mcp",
    "mcp_types",
    "openai",
    "pydantic",
    "pydantic_ai",
    "sqlalchemy",
    "sse_starlette",
    "uvicorn",
]


def test_importing_the_web_brings_in_starlette_and_nothing_else_that_is_heavy() -> None:
    web = "denizen.web.app, denizen.adapters.mcp_server"
    code = f"import sys, {web}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
