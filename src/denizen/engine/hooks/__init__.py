"""Steps 3 and 10 of a turn: the owner's own tool calls, before the model is asked and after the answer is recorded.

runner      runs the hooks of a turn through the gate, each once
skip_rule   whether the output of a hook matches a regular expression, within a bounded time
"""
