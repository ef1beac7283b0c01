"""The page on which a person plays the people of the simulated Discord, and the JSON under `/sim` that it uses.

`site` serves and guards it; `routes` are thin wrappers of the world; `feed` tells open pages of changes; `view` is
the world as one person sees it. Programs may use `/sim` too.
"""
