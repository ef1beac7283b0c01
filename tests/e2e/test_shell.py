"""The read-only shell from the outside: a model searches the knowledge folder."""

from __future__ import annotations

import pytest

from denizen.testing.model_server import ModelAnswer, ModelCall
from tests.e2e.home import Home
from tests.e2e.provider import Provider

pytestmark = pytest.mark.e2e


@pytest.mark.proves("S22", "S23", "SW1")
def test_a_model_searches_the_knowledge_and_reads_why_something_is_refused(home: Home, provider: Provider) -> None:
    home.configure(provider.server.openai_url)
    (home.folder / "knowledge").mkdir()
    (home.folder / "knowledge" / "rules.md").write_text("Tea at five | cake at six\n", encoding="utf-8")
    if "bash" not in home.do("tools").out:
        pytest.skip("nothing shuts programs in here")
    line = 'grep -rn "five | cake" . 2>/dev/null | head -5'
    commands = [
        ModelCall("bash", {"command": line}, id="c1"),
        ModelCall("bash", {"command": "cat ../denizen.yaml"}, id="c2"),
    ]
    provider.script(ModelAnswer(calls=commands), ModelAnswer(text="At five."))
    assert home.do("ask", "When is tea?").ending == (0, "At five.\n")
    found, refused = [row["content"] for row in provider.server.bodies[1]["messages"] if row["role"] == "tool"]
    assert "./shared/rules.md:1:Tea at five | cake at six" in found
    assert "refused: `../denizen.yaml` leads out of the top folder." in refused
