"""MCP servers that come with Denizen and are of use without it: `denizen-mcp-toolbox` and `denizen-mcp-pixellab`.

Their tools are declared with `denizen.skill`, as every other tool is. Denizen starts these servers like any other, as
child processes that get their own environment and nothing else.

    server.py         skills as an MCP server on standard input and output, and progress of long calls
    vendor_client.py  requests to a vendor's JSON API: retries, and a text of its own for each way to fail
    toolbox.py        time, weather, IP reputation, pictures          (the program denizen-mcp-toolbox)
    pixellab.py       sprites: PixelLab's API and the tools over it   (the program denizen-mcp-pixellab)
"""
