"""`/api/upload`: files that people attach to their own chats."""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.chat import check_chat_id
from denizen.domain.upload import MAX_UPLOAD_BYTES, WEBP, shown_name
from denizen.engine.chats.uploads import ChatUploads
from denizen.web.api.chat_records import UPLOAD_PATH, upload_to_wire
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.request import QueryParameter, read_bytes
from denizen.web.http.routing import Access
from denizen_sdk.chats import UploadInfo

_NAME = QueryParameter(
    name="name", description="The name of the file, which shows in its path.", default="file", max_chars=200
)
_BYTES = {"type": "string", "contentMediaType": "application/octet-stream"}
_SANDBOX = "default-src 'none'; sandbox"
"""Whatever a browser made of the bytes, it would run nothing and load nothing."""


class UploadRoutes:
    """The routes that take, serve and delete files of chats."""

    def __init__(self, uploads: ChatUploads) -> None:
        self._uploads = uploads

    @property
    def routes(self) -> list[ApiRoute]:
        path = UPLOAD_PATH + "{path:path}"
        return [
            ApiRoute(
                "PUT",
                UPLOAD_PATH + "{chat_id}",
                self.put,
                Access.MEMBER,
                Operation(
                    "Upload a picture, a PDF or a CSV file to an own chat", _BYTES, UploadInfo, 201, query=(_NAME,)
                ),
            ),
            ApiRoute("GET", path, self.get, Access.MEMBER, Operation("The bytes of an own upload", status=0)),
            ApiRoute("DELETE", path, self.remove, Access.MEMBER, Operation("Delete an own upload", status=204)),
        ]

    async def put(self, request: Request) -> Response:
        chat_id, name = check_chat_id(request.path_params["chat_id"]), _NAME.read_text(request)
        data = await read_bytes(request, limit=MAX_UPLOAD_BYTES)
        upload = await self._uploads.put(get_principal(request).key, chat_id, name, data)
        return JSONResponse(asdict(upload_to_wire(upload)), status_code=201)

    async def get(self, request: Request) -> Response:
        upload = await self._uploads.get(get_principal(request).key, request.path_params["path"])
        kind = "inline" if upload.media_type == WEBP else "attachment"
        headers = {
            "Cache-Control": "private, max-age=86400, immutable",  # the path has the hash of the content
            "Content-Disposition": f'{kind}; filename="{shown_name(upload.path.text)}"',
            "Content-Security-Policy": _SANDBOX,
        }
        return Response(upload.data, media_type=upload.media_type, headers=headers)

    async def remove(self, request: Request) -> Response:
        await self._uploads.remove(get_principal(request).key, request.path_params["path"])
        return Response(status_code=204)
