"""Importing sources: a list or a screenshot is read into proposals, which somebody reviews and adds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from denizen.domain.message import ImagePart
from denizen.ports.model import Capabilities
from denizen.testing.memory_durable import MemoryDurable
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from denizen.testing.temporary_store import TemporaryStore
from denizen.web.http.dependencies import KnowledgeServices
from denizen_sdk import ApiError
from tests.clock import ManualClock
from tests.engine.knowledge.knowledge_fixture import KnowledgeFixture
from tests.web.knowledge_web_fixture import ApiCaller, build_knowledge_services, open_knowledge_web
from tests.web.test_source_pages import Browser
from tests.web_fixture import ADA, ANN, MakeKnowledge, open_web

pytestmark = pytest.mark.anyio

PICTURE = "data:image/png;base64,iVBORw0KGgo="
LIST = """
sources:
  github:
    - {id: guide, repo: lab/guide, contentPath: docs}
    - {repo: lab/broken, branch: "no branch"}
  youtube:
    - handle: "@lab"
      maxVideos: 3
"""


def read_rows(page: str) -> dict[str, str]:
    """The fields of the form under review, with their values, as a browser would send them."""
    form = page[page.index('action="/admin/import-sources/add"') :].partition("</form>")[0]
    fields: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", form):
        attrs = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if attrs.get("type") != "checkbox" or " checked" in tag:
            fields[attrs["name"]] = attrs["value"]
    return fields


@pytest.mark.proves("S-http-sources-ocr-post", "S-admin-new-source")
async def test_a_configuration_file_is_read_into_sources_to_review_and_add(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        ada = Browser(client, "key-of-ada")
        assert 'name="text"' in await ada.read("/admin/import-sources")
        review = await ada.send("/admin/import-sources", text=LIST)
        assert review.status_code == 200
        assert "3 found" in review.text
        assert "is not the name of a branch" in review.text
        assert await server.engine.catalog.list_known() == []
        fields = read_rows(review.text)
        assert [name for name in fields if name.endswith("-use")] == ["0-use", "2-use"]
        answer = await ada.send("/admin/import-sources/add", **(fields | {"0-label": "Guide"}))
        assert answer.headers["location"] == "/admin/sources?done=imported"
        known = {each.source.id: each.source for each in await server.engine.catalog.list_known()}
        assert known.keys() == {"guide", "lab"}
        assert (known["guide"].content_path, known["guide"].label) == ("docs", "Guide")
        assert known["lab"].max_videos == 3
        again = await ada.send("/admin/import-sources/add", **fields)
        assert (again.status_code, "There is a source &#39;guide&#39; already." in again.text) == (200, True)


async def test_lines_of_places_and_json_are_lists_too_and_what_is_none_is_told(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server:
        find = server.sdk.find_sources_in
        assert [each.id for each in await find(text="- lab/a\n- @lab\nhttps://a.example/sitemap.xml\n")] == [
            "a",
            "lab",
            "sitemap.xml",
        ]
        [one] = await find(text='[{"repo": "lab/a", "branch": "main"}]')
        assert (one.settings.kind, one.settings.branch, one.settings.label) == ("git", "main", None)
        for text, code in (
            ("a: [1", "config_invalid"),
            ("server: {port: 1}", "list_empty"),
            ("x " * 60_000, "list_long"),
        ):
            with pytest.raises(ApiError) as refused:
                await find(text=text)
            assert (refused.value.status, refused.value.code) == (400, code)
        both = await server.admin.ask("POST", "/api/sources/ocr", text="lab/a", image=PICTURE)
        assert (both[0], (await server.member.ask("POST", "/api/sources/ocr", text="lab/a"))[0]) == (400, 403)


def make_knowledge(root: Path) -> MakeKnowledge:
    def make(store: TemporaryStore, durable: MemoryDurable, _: ManualClock) -> KnowledgeServices:
        return build_knowledge_services(KnowledgeFixture(root, store=store, durable=durable), {})

    return make


@pytest.mark.proves("S-http-sources-ocr-post")
async def test_a_screenshot_is_read_by_a_model_that_sees_and_its_answer_is_sanitised(tmp_path: Path) -> None:
    told = {"sources": [{"location": "lab/guide"}, {"location": "file:///etc", "label": "x\ny"}, {"location": "@lab"}]}
    model = ScriptedModel(
        ScriptedReply(f"Here it is:\n```json\n{json.dumps(told)}\n```"),
        ScriptedReply("I see nothing."),
        capabilities=Capabilities(images=True),
    )
    async with open_web(model, keys=[ADA, ANN], make_knowledge=make_knowledge(tmp_path)) as web, web.client() as client:
        ada = ApiCaller(client, "key-of-ada")
        assert "screenshot" in await Browser(client, "key-of-ada").read("/admin/import-sources")
        status, found = await ada.ask("POST", "/api/sources/ocr", image=PICTURE)
        assert status == 200
        assert [(each["id"], bool(each["problem"])) for each in found["sources"]] == [
            ("guide", False),
            ("", True),
            ("lab", False),
        ]
        [request] = model.requests
        assert request.messages[0].parts[0] == ImagePart(PICTURE, "image/png")
        status, told_nothing = await ada.ask("POST", "/api/sources/ocr", image=PICTURE)
        assert (status, told_nothing["error"]["code"]) == (400, "list_empty")
        for wrong in ("data:text/html,x", "data:image/svg+xml,<svg></svg>", "https://a.example/a.png"):
            status, refused = await ada.ask("POST", "/api/sources/ocr", image=wrong)
            assert (status, refused["error"]["code"]) == (400, "picture_invalid")


async def test_without_a_model_that_sees_a_screenshot_is_refused_and_the_page_says_why(tmp_path: Path) -> None:
    async with open_knowledge_web(tmp_path) as server, server.web.client() as client:
        status, refused = await server.admin.ask("POST", "/api/sources/ocr", image=PICTURE)
        assert (status, refused["error"]["code"]) == (503, "picture_model_missing")
        page = await Browser(client, "key-of-ada").read("/admin/import-sources")
        assert ("none has one" in page, "image/png" in page) == (True, False)
