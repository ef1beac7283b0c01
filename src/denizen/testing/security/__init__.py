"""The security bench, `denizen bench security`: prompt injections against the gate.

`engine` runs turns through the real engine, `corpus` and the modules `cases_*` have our own attacks, `agentdojo` and
`agentdojo_bench` those of AgentDojo, and `report` counts the results. The model is a script that obeys every order it
reads, so that the bench measures the gate alone.
"""
