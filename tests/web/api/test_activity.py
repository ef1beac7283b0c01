"""Activity and the files of the prompt over HTTP, and who sees what of them."""

import pytest

from denizen.domain.agent import Agent, AgentInstructions
from denizen.domain.ids import AgentName
from denizen.domain.principal import Principal, PrincipalKind
from denizen.engine.audit.audit_log import AuditLog
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply, call
from tests.web.api.test_commands import AS_ADA, AS_ANN, AS_BEN, AS_OWEN, OWEN
from tests.web_fixture import ADA, ANN, BEN, open_web

pytestmark = pytest.mark.anyio


async def test_activity_has_the_newest_turns_and_acts_that_the_caller_may_see() -> None:
    model = ScriptedModel(
        ScriptedReply(calls=[call("weather", city="Oslo")]), ScriptedReply("Sunny."), ScriptedReply("Hello.")
    )
    async with open_web(model, keys=[ANN, BEN, ADA, OWEN]) as web, web.client() as client:
        await client.post("/api/chat", json={"message": "How is Oslo?"}, headers=AS_ANN)
        web.clock.advance(60)
        await client.post("/api/chat", json={"message": "Hi"}, headers=AS_BEN)
        web.clock.advance(60)
        private = Principal(PrincipalKind.WEB_USER, "zoe", "Zoe")
        await AuditLog(web.store, web.clock).switch(private, "observer", "disable")

        async def look(credentials: dict[str, str], **query: int) -> list[tuple[str, str, str]]:
            rows = (await client.get("/api/activity", headers=credentials, params=query)).json()
            return [(row["kind"], row["actor"], row["subject"]) for row in rows]

        of_ann = {("turn", "api_key:ann", "denizen"), ("call", "api_key:ann", "weather")}
        of_ben = ("turn", "api_key:ben", "denizen")
        of_zoe = ("switch", "web_user:zoe", "observer")
        assert set(await look(AS_ANN)) == of_ann
        assert await look(AS_BEN) == [of_ben]
        for credentials in (AS_ADA, AS_OWEN):
            found = await look(credentials)
            assert found[:2] == [of_zoe, of_ben]
            assert set(found[2:]) == of_ann
        assert await look(AS_OWEN, limit=1) == [of_zoe]


async def test_files_of_the_prompt_are_named_for_everybody_and_shown_to_owners() -> None:
    instructions = AgentInstructions(persona=(("SOUL.md", "Be kind."),), context_files=(("rules.md", "No spam."),))
    agents = [Agent(AgentName("denizen"), instructions=instructions), Agent(AgentName("scribe"))]
    async with open_web(keys=[ANN, ADA, OWEN], agents=agents) as web, web.client() as client:
        found = {}
        for credentials in (AS_ANN, AS_ADA, AS_OWEN):
            rows = (await client.get("/api/context-files", headers=credentials)).json()
            assert [(row["kind"], row["name"], row["chars"]) for row in rows] == [
                ("persona", "SOUL.md", 8),
                ("context", "rules.md", 8),
            ]
            found[credentials["x-api-key"]] = [row["text"] for row in rows]
        assert (await client.get("/api/context-files", params={"agent": "scribe"}, headers=AS_ANN)).json() == []
    assert found == {"key-of-ann": [None, None], "key-of-ada": [None, None], "key-of-owen": ["Be kind.", "No spam."]}
