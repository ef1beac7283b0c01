"""A server of an earlier protocol, written out by hand: it knows no discovery, tells of changes without being asked,
and some of its schemas are strange. Over standard input and output.
"""

import json
import sys

OBJECT = {"type": "object", "properties": {}}
TOOLS = {
    "plain": {**OBJECT, "$schema": "http://json-schema.org/draft-07/schema#"},
    "tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
        "properties": {"pair": {"$ref": "#/definitions/pair"}, "anything": True},
        "required": ["pair"],
    },
    "far": {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}},
    "round": {"type": "object", "$ref": "#"},
    "broken": {"type": "object", "properties": {"x": {"type": "nonsense"}}},
    "rename me!": OBJECT,
    "rename_me?": OBJECT,
    "x" * 90: OBJECT,
}


def say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            info = {"name": "old", "version": "0.1"}
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": info,
            }
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]}
        case "tools/call" if params["name"] == "plain":
            TOOLS["newer"] = OBJECT
            say({"method": "notifications/tools/list_changed"})
            return {"content": [{"type": "text", "text": "plain enough"}]}
        case "tools/call" if params["name"] in TOOLS:
            return {"content": [{"type": "text", "text": f"called {params['name']}"}]}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params", {}))
    if result is None:
        say({"id": request["id"], "error": {"code": -32601, "message": "no such thing here"}})
    else:
        say({"id": request["id"], "result": result})
