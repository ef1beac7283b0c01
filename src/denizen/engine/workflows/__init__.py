"""Workflows: `runner` runs the graph of one as the answer of a turn, `tools` and `people` do what its nodes want done
outside, `catalog` is the door for commands, pages and tools.
"""
