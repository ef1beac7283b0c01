"""MCP servers that come with Denizen and are of use without it: `denizen-mcp-toolbox` and `denizen-mcp-pixellab`.

Their tools are declared with `denizen.skill`, as every other tool is; `serve.py` offers such skills over MCP. Denizen
starts these servers like any other, as child processes that get their own environment and nothing else.

    serve.py      skills as an MCP server on standard input and output
    progress.py   how far a long call is
    remote.py     requests to a vendor's JSON API: retries, and a text of its own for each way to fail
    toolbox.py    time, weather, IP reputation, pictures          (the program denizen-mcp-toolbox)
    greynoise.py  what GreyNoise knows about an address
    painter.py    pictures from a description
    pixellab.py   sprites, as tools                               (the program denizen-mcp-pixellab)
    sprites.py    PixelLab's API: jobs that are polled, characters, rotations, animations
    frames.py     several pictures as one: a sheet, a GIF
"""
