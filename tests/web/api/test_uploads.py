"""Uploads of chats: what is taken and how it is stored, what models read of it, and attacks."""

import re
import struct
import zlib
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from denizen.adapters.uploads import images
from denizen.domain.message import ImagePart, TextPart
from denizen.domain.upload import owner_folder
from denizen.engine.chats import uploads
from denizen.ports.model import Capabilities
from denizen.testing.scripted_model import ScriptedModel, ScriptedReply
from tests.adapters.documents.pdf_files import make_pdf
from tests.web_fixture import ANN, BEN, WebFixture, make_hello_model, open_web

pytestmark = pytest.mark.anyio

AS_ANN, AS_BEN = {"x-api-key": "key-of-ann"}, {"x-api-key": "key-of-ben"}
CSV = b"city,people\nRome,2800000\nOslo,709000\n"
PDF = make_pdf(["Invoice 4711"])


def picture(kind: str = "PNG", size: tuple[int, int] = (20, 10), **options: Any) -> bytes:
    file = BytesIO()
    Image.new("RGB", size, "red").save(file, kind, **options)
    return file.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims, and holds, that many black pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width + 7) // 8 + 1) * min(height, 1000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def put(client: httpx2.AsyncClient, data: bytes, name: str = "file", chat: str = "c") -> httpx2.Response:
    return await client.put(f"/api/upload/{chat}", params={"name": name}, content=data)


async def make_chat(client: httpx2.AsyncClient, chat: str = "c") -> None:
    assert (await client.post("/api/chats", json={"id": chat})).status_code == 201


def files(web: WebFixture) -> list[Path]:
    return sorted(path for path in web.uploads.rglob("*") if path.is_file())


@pytest.mark.proves("S-http-upload-chat-put")
async def test_the_owner_of_a_chat_uploads_a_file_to_it_and_reads_it_at_its_address() -> None:
    async with open_web(keys=[ANN, BEN]) as web, web.client(**AS_ANN) as ann, web.client(**AS_BEN) as ben:
        await make_chat(ann)
        made = await put(ann, CSV, "People of cities.csv")
        foreign, missing = await put(ben, CSV), await put(ann, CSV, chat="none")
        row = made.json()
        shown = await ann.get(row["url"])
        hidden = await ben.get(row["url"])
        [mode] = [file.stat().st_mode & 0o077 for file in files(web)]
    assert (made.status_code, foreign.status_code, missing.status_code, hidden.status_code) == (201, 404, 404, 404)
    assert (row["name"], row["media_type"], row["size_bytes"]) == ("People-of-cities.csv", "text/csv", len(CSV))
    assert row["path"].startswith(f"{owner_folder('api_key:ann')}/c/") and row["url"] == f"/api/upload/{row['path']}"
    assert shown.content == CSV and shown.headers["content-type"].startswith("text/csv")
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert shown.headers["content-disposition"] == 'attachment; filename="People-of-cities.csv"'
    assert "sandbox" in shown.headers["content-security-policy"]
    assert mode == 0


@pytest.mark.proves("S-upload-limits", "S-blob")
async def test_an_upload_is_an_image_pdf_or_csv_of_at_most_eight_megabytes_stored_once_by_user_chat_and_content() -> (
    None
):
    async with open_web(keys=[ANN]) as web, web.client(**AS_ANN) as ann:
        await make_chat(ann)
        taken = [
            (await put(ann, data, name)).json()["path"]
            for data, name in ((picture(), "a.png"), (PDF, "b.pdf"), (CSV, "c.csv"), (CSV, "c.csv"))
        ]
        largest = await put(ann, b"a,b\n" + b"1,2\n" * 1_999_999, "large.csv")
        larger = await put(ann, b"a,b\n" + b"1,2\n" * 2_000_000, "larger.csv")
        stored = [str(path.relative_to(web.uploads)) for path in files(web)]
        await ann.delete(f"/api/upload/{largest.json()['path']}")
    folder = owner_folder("api_key:ann")
    assert folder.startswith("api_key-ann-")
    for path, name in zip(taken, ("a", "b", "c", "c"), strict=True):
        assert re.fullmatch(rf"{folder}/c/{name}-[0-9a-f]{{8}}\.\w+", path)
    assert [path.rpartition(".")[2] for path in taken] == ["webp", "pdf", "csv", "csv"] and taken[2] == taken[3]
    assert (largest.status_code, larger.status_code) == (201, 413) and len(stored) == 4


@pytest.mark.proves("S-upload-images")
@pytest.mark.parametrize(("kind", "size"), [("PNG", (3000, 1500)), ("JPEG", (4000, 100)), ("GIF", (50, 60))])
async def test_an_uploaded_image_is_encoded_again_as_webp_of_at_most_2048_pixels(
    kind: str, size: tuple[int, int]
) -> None:
    async with open_web() as web, web.client() as client:
        await make_chat(client)
        row = (await put(client, picture(kind, size), "holiday.jpg")).json()
        shown = await client.get(row["url"])
    found = Image.open(BytesIO(shown.content))
    assert (row["media_type"], shown.headers["content-type"], found.format) == ("image/webp", "image/webp", "WEBP")
    scale = min(1.0, 2048 / max(size))
    assert found.size == (round(size[0] * scale), round(size[1] * scale))
    assert shown.headers["content-disposition"].startswith("inline")


@pytest.mark.proves("S-upload-images")
async def test_an_uploaded_image_has_quality_80() -> None:
    noise = Image.frombytes("RGB", (64, 64), bytes(Random(1).randbytes(64 * 64 * 3)))
    as_png, by_quality = BytesIO(), {quality: BytesIO() for quality in (79, 80, 81)}
    noise.save(as_png, "PNG")
    for quality, file in by_quality.items():
        noise.save(file, "WEBP", quality=quality)
    async with open_web() as web, web.client() as client:
        await make_chat(client)
        await put(client, as_png.getvalue(), "noise.png")
        [stored] = [file.read_bytes() for file in files(web)]
    assert [quality for quality, file in by_quality.items() if file.getvalue() == stored] == [80]


async def test_nothing_but_the_pixels_of_a_picture_is_kept() -> None:
    secret = PngInfo()
    secret.add_text("Comment", "<script>alert(1)</script> taken at home")
    polyglot = picture(pnginfo=secret) + b"<script>alert(2)</script>"
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    async with open_web() as web, web.client() as client:
        await make_chat(client)
        for data in (polyglot, picture("JPEG", exif=exif.tobytes()) + b"<script>"):
            assert (await put(client, data, "x.html")).status_code == 201
        stored = [file.read_bytes() for file in files(web)]
    assert stored and all(b"script" not in data and b"taken at home" not in data for data in stored)


@pytest.mark.proves("S-upload-limits")
@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "a.csv", "upload_type"),
        (b"\xef\xbb\xbf <!doctype html><script>1,2</script>", "a.csv", "upload_type"),
        (b"MZ\x90\x00 this program cannot be run", "a.png", "upload_type"),
        (b"PK\x03\x04\x00\x00", "a.csv", "upload_type"),
        (b"just words", "a.png", "upload_type"),
        (b" %PDF-1.4", "a.pdf", "upload_type"),
        (b"\x89PNG\r\n\x1a\n broken", "a.png", "upload_image_broken"),
        (b"\xff\xd8\xff\xe0 broken", "a.jpg", "upload_image_broken"),
        (b"RIFF\x00\x00\x00\x00WEBP broken", "a.webp", "upload_image_broken"),
        (bomb(60_000, 60_000), "bomb.png", "upload_image_large"),
        (bomb(2**31 - 1, 1), "wide.png", "upload_image_large"),
        (b"", "a.csv", "upload_size"),
    ],
)
async def test_what_is_no_image_pdf_or_csv_file_is_refused_whatever_its_name(data: bytes, name: str, code: str) -> None:
    async with open_web() as web, web.client() as client:
        await make_chat(client)
        response = await put(client, data, name)
        assert files(web) == []
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)


def test_the_largest_picture_that_is_read_is_bounded() -> None:
    assert images.MAX_PIXELS <= 50_000_000


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..\\..\\boot.csv",
        "/abs.csv",
        "a\x00b.csv",
        "..",
        ".",
        "",
        "é" * 100,
        "a/b/c.csv",
        "%2e%2e/x",
    ],
)
async def test_a_name_leads_nowhere_else(name: str) -> None:
    async with open_web() as web, web.client() as client:
        await make_chat(client)
        response = await put(client, CSV, name)
        [file] = files(web)
    parts = file.relative_to(web.uploads).parts
    assert response.status_code == 201 and len(parts) == 3 and parts[1] == "c"
    assert all(part.replace("-", "").replace("_", "").replace(".csv", "").isalnum() for part in parts)


@pytest.mark.parametrize(
    "path",
    [
        "{owner}/c/../../../secret.csv",
        "..%2F..%2Fsecret.csv",
        "{owner}/c/..%2f..%2fsecret.csv",
        "{owner}/c",
        "{owner}",
        "%2Fetc%2Fpasswd",
        "{owner}/c/x-00000000.html",
        "{owner}/c/x-00000000.csv%00",
        "{owner}/./x-00000000.csv",
    ],
)
async def test_a_path_leads_nowhere_else(path: str) -> None:
    async with open_web() as web, web.client() as client:
        web.uploads.mkdir()
        (web.uploads.parent / "secret.csv").write_bytes(CSV)
        address = "/api/upload/" + path.format(owner=owner_folder("local:local"))
        assert (await client.get(address)).status_code == 404
        assert (await client.delete(address)).status_code in {404, 405}
        assert (web.uploads.parent / "secret.csv").exists()


@pytest.mark.proves("S-http-upload-path-delete")
async def test_a_person_deletes_an_upload_only_below_the_own_prefix() -> None:
    async with open_web(keys=[ANN, BEN]) as web, web.client(**AS_ANN) as ann, web.client(**AS_BEN) as ben:
        await make_chat(ann)
        await make_chat(ben)
        url = (await put(ann, CSV, "x.csv")).json()["url"]
        disguised = url.replace(owner_folder("api_key:ann"), owner_folder("api_key:ben"))
        foreign = [(await ben.delete(each)).status_code for each in (url, disguised)]
        left = len(files(web))
        own = [(await ann.delete(url)).status_code for _ in range(2)]
        gone = files(web)
    assert (foreign, left, own, gone) == ([404, 404], 1, [204, 404], [])


@pytest.mark.proves("S-data-messages")
async def test_models_read_the_pixels_of_pictures_and_the_text_of_files() -> None:
    sees = ScriptedModel(otherwise=ScriptedReply("Nice."), capabilities=Capabilities(images=True))
    async with open_web(sees) as web, web.client() as client:
        await make_chat(client)
        rows = [(await put(client, *each)).json() for each in ((picture(), "a.png"), (PDF, "b.pdf"), (CSV, "c.csv"))]
        paths = [row["path"] for row in rows]
        await client.post("/api/chats/c", json={"message": "What is this?", "uploads": paths})
        await client.delete(rows[0]["url"])
        await client.post("/api/chats/c", json={"message": "And now?"})
        question, *_ = (await client.get("/api/chats/c")).json()["messages"]
        first, second = web.model.requests
    [image] = [part for part in first.messages[-1].parts if isinstance(part, ImagePart)]
    _, *texts = [part.text for part in first.messages[-1].parts if isinstance(part, TextPart)]
    head, _, data = image.url.partition(",")
    assert head == "data:image/webp;base64" and Image.open(BytesIO(b64decode(data))).size == (20, 10)
    assert "Invoice 4711" in texts[0] and texts[1].endswith(CSV.decode())
    assert [row["path"] for row in question["uploads"]] == paths
    assert [(row["name"], row["media_type"], row["url"]) for row in question["uploads"]] == [
        ("a.webp", "image/webp", rows[0]["url"]),
        ("b.pdf", "application/pdf", rows[1]["url"]),
        ("c.csv", "text/csv", rows[2]["url"]),
    ]
    assert not any(isinstance(part, ImagePart) for message in second.messages for part in message.parts)


async def test_a_message_may_be_an_upload_alone_but_not_one_of_another_chat_or_person() -> None:
    async with (
        open_web(make_hello_model(), keys=[ANN, BEN]) as web,
        web.client(**AS_ANN) as ann,
        web.client(**AS_BEN) as ben,
    ):
        for client, chat in ((ann, "c"), (ann, "d"), (ben, "c")):
            await make_chat(client, chat)
        path = (await put(ann, CSV, "x.csv")).json()["path"]
        statuses = [
            (await client.post(f"/api/chats/{chat}", json={"uploads": [path]})).status_code
            for client, chat in ((ann, "c"), (ann, "d"), (ben, "c"))
        ]
        many = await ann.post("/api/chats/c", json={"uploads": [path] * 11})
        wrong = await ann.post("/api/chats/c", json={"message": "hi", "uploads": "x"})
    assert statuses == [200, 404, 404] and (many.status_code, wrong.status_code) == (400, 400)


async def test_nobody_fills_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_OWNER_BYTES", len(CSV))
    async with open_web(keys=[ANN, BEN]) as web, web.client(**AS_ANN) as ann, web.client(**AS_BEN) as ben:
        await make_chat(ann)
        await make_chat(ben)
        statuses = [(await put(client, CSV, name)).status_code for client, name in ((ann, "a"), (ann, "b"), (ben, "a"))]
    assert statuses == [201, 429, 201]
