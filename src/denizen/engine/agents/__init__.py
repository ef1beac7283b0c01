"""The agents themselves, as people and models make, describe, switch and remove them.

`catalog` does it, for all faces alike; `tools` offers it to models.
"""
