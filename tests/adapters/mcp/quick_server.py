"""A small MCP server written out by hand, which starts at once: one on the vendor's library takes a second.

Run as a program, over standard input and output. It writes a line into the file $STARTS when it starts, and for what it
has done.
"""

import json
import os
import sys
from pathlib import Path

OBJECT = {"type": "object", "properties": {}}
READS, SURE, REPEATABLE, HARMS = (
    {"readOnlyHint": True},
    {"readOnlyHint": True, "idempotentHint": True},
    {"idempotentHint": True},
    {"destructiveHint": True},
)
SIDES = {"type": "object", "properties": {"sides": {"type": "integer"}}, "required": ["sides"]}
TOOLS = {
    "environment": (READS, OBJECT),
    "pid": (READS, OBJECT),
    "roll": (SURE, SIDES),
    "wipe": (HARMS, OBJECT),
    "fall": (None, OBJECT),
    "fall_once": (REPEATABLE, OBJECT),
    "show": (None, OBJECT),
    "facts": (None, OBJECT),
    "fail": (None, OBJECT),
}
EVERYTHING = [
    {"type": "text", "text": "Look:"},
    {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///notes.txt", "text": "remember"}},
    {
        "type": "resource",
        "resource": {"uri": "file:///a/report.pdf", "mimeType": "application/pdf", "blob": "JVBERg=="},
    },
    {"type": "resource_link", "name": "manual", "uri": "https://example.org/manual", "description": "How to"},
    {"type": "resource_link", "name": "local", "uri": "file:///etc/passwd"},
]


def say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def notes() -> Path:
    return Path(os.environ["STARTS"])


def note(text: str) -> None:
    with notes().open("a") as file:
        file.write(f"{text}\n")


def text(value: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}]}


def call(name: str, args: dict[str, object], token: object) -> dict[str, object] | None:
    """None for a call that is not answered."""
    match name:
        case "environment":
            return text(" ".join(sorted(os.environ)))
        case "pid":
            return text(str(os.getpid()))
        case "roll":
            return text(f"{args['sides']}: {os.urandom(8).hex()}")
        case "show":
            return {"content": EVERYTHING}
        case "facts":
            return {"content": [], "structuredContent": {"answer": 42}}
        case "fail":
            return {**text("the well is dry"), "isError": True}
        case "wipe":
            note("wipe")
            return text("gone")
        case "fall_once" if "fall_once" in notes().read_text():
            note("fall_once")
            return text("done at last")
        case _:
            note(name)
            progress = {"progressToken": token, "progress": 1, "total": 4, "message": "begun"}
            say({"method": "notifications/progress", "params": progress})
            return None


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            info = {"name": "small", "version": "1.2.3"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            listed = TOOLS.items()
            return {
                "tools": [{"name": n, "annotations": hints, "inputSchema": schema} for n, (hints, schema) in listed]
            }
        case _:
            return None


note("start")
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    params = request.get("params", {})
    if request["method"] == "tools/call":
        result = call(params["name"], params.get("arguments", {}), params.get("_meta", {}).get("progressToken"))
        if result is not None:
            say({"id": request["id"], "result": result})
    elif (result := answer(request["method"], params)) is None:
        say({"id": request["id"], "error": {"code": -32601, "message": "no such thing here"}})
    else:
        say({"id": request["id"], "result": result})
