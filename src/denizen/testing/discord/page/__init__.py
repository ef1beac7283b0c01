"""The page on which a person plays the people of the simulated Discord, and the JSON under `/sim` that it uses.

`site` serves it and guards it; `talk_routes` and `use_routes` are thin over the world; `feed` tells open pages what
happens; `view` is what one person sees. Programs may use `/sim` too.
"""
