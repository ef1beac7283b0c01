"""PDFs of Markdown files: what stands in them, and that nothing outside the allowed folders does."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader

from denizen.builtin_skills import load_builtin
from denizen.builtin_skills.pdf_rendering import MAX_CHARS
from denizen.domain.tool import ToolResult
from denizen.skill import SkillToolset
from tests.skill_fixture import ServicesFixture, run

pytestmark = pytest.mark.anyio

TEXT = """\
# Отчёт

Some **bold** and *italic* words, [a link](https://a.example/) and [an anchor](#there).

| Name | Число |
|------|-------|
| `a`  | **два** |

- one
  - nested

```python
print("привет")
```

<script>alert(1)</script>
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    (folder / "sub").mkdir(parents=True)
    return folder


async def make(shared: Path, path: str, **more: str) -> ToolResult:
    toolset = SkillToolset(load_builtin("files"), ServicesFixture(shared).services(), {"allowed": [str(shared)]})
    return await run(toolset, "md_to_pdf", {"path": path, **more})


def picture(colour: tuple[int, int, int] = (200, 0, 0), size: tuple[int, int] = (20, 10)) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", size, colour).save(data, "PNG")
    return data.getvalue()


@pytest.mark.proves("T-tool-md-to-pdf")
async def test_a_markdown_file_becomes_a_pdf_beside_it_whose_path_is_told(shared: Path) -> None:
    (shared / "sub" / "report.md").write_text(TEXT, encoding="utf-8")
    result = await make(shared, "sub/report.md")
    assert (result.text, result.is_error) == ("Made sub/report.pdf.", False)
    [page] = PdfReader(shared / "sub" / "report.pdf").pages
    text = page.extract_text()
    for shown in ("Отчёт", "Some bold and italic words", "Name Число", "a два", "nested", 'print("привет")'):
        assert shown in text
    assert "<script>alert(1)</script>" in text, "HTML is shown as text"
    assert [note["/A"]["/URI"] for note in page.annotations or ()] == ["https://a.example/"]


async def test_the_same_text_is_the_same_file_and_another_file_is_not_replaced(shared: Path) -> None:
    (shared / "a.md").write_text("one", encoding="utf-8")
    await make(shared, "a.md")
    first = (shared / "a.pdf").read_bytes()
    assert not (await make(shared, "a.md")).is_error
    (shared / "a.md").write_text("two", encoding="utf-8")
    refused = await make(shared, "a.md")
    assert refused.is_error
    assert "is there already, with another content" in refused.text
    assert (shared / "a.pdf").read_bytes() == first
    assert (await make(shared, "a.md", pdf="b.pdf")).text == "Made b.pdf."


async def test_pictures_of_the_allowed_folders_are_shown_and_no_others(shared: Path) -> None:
    (shared.parent / "secret.png").write_bytes(picture())
    (shared / "link.png").symlink_to(shared.parent / "secret.png")
    (shared / "sub" / "mine.png").write_bytes(picture())
    (shared / "sub" / "no.png").write_text("no picture", encoding="utf-8")
    (shared / "sub" / "huge.png").write_bytes(picture(size=(6000, 6000)))
    sources = [
        "mine.png",
        "../../secret.png",
        f"{shared.parent}/secret.png",
        "../link.png",
        "http://127.0.0.1:9/x.png",
        "file:///etc/hostname",
        "//host/x.png",
        "no.png",
        "huge.png",
        "missing.png",
    ]
    (shared / "sub" / "a.md").write_text("\n\n".join(f"![p{n}]({s})" for n, s in enumerate(sources)), encoding="utf-8")
    result = await make(shared, "sub/a.md")
    assert "8 pictures are not shown" in result.text, "file: is no link of Markdown at all"
    pages = PdfReader(shared / "sub" / "a.pdf").pages
    assert sum(len(page.images) for page in pages) == 1
    assert "[p1]" in "".join(page.extract_text() for page in pages)


@pytest.mark.parametrize(
    ("path", "more", "told"),
    [
        ("../outside.md", {}, "without `..`"),
        ("/etc/hostname", {}, "outside of what is allowed"),
        ("missing.md", {}, "There is no file"),
        ("a.md", {"pdf": "a.txt"}, "has to end in .pdf"),
        ("a.md", {"pdf": "../a.pdf"}, "without `..`"),
        ("long.md", {}, "at most 200,000 characters"),
    ],
)
async def test_what_cannot_be_made_says_why(shared: Path, path: str, more: dict[str, str], told: str) -> None:
    (shared / "a.md").write_text("one", encoding="utf-8")
    (shared / "long.md").write_text("x" * (MAX_CHARS + 1), encoding="utf-8")
    result = await make(shared, path, **more)
    assert result.is_error
    assert told in result.text
    assert not list(shared.glob("*.pdf"))


async def test_letters_that_no_font_has_are_told(shared: Path) -> None:
    (shared / "a.md").write_text("unassigned: \ufdd1 private: \U0010fffd", encoding="utf-8")
    (shared / "b.md").write_text("only \U0001e7ff", encoding="utf-8")
    assert not (await make(shared, "a.md")).is_error
    assert not (await make(shared, "b.md")).is_error
    (shared / "c.md").write_text("cuneiform \U00012000", encoding="utf-8")
    assert "No font here has these letters: \U00012000" in (await make(shared, "c.md")).text
