"""How the gate stands up to a model that obeys every order it reads: `denizen bench security` (promise 2).

`stage` runs turns through the real engine, `corpus` and `cases` are our own attacks, `dojo` and its neighbours those of
AgentDojo, `report` counts. The model is a script that does the worst, so that what is measured is the gate alone.
"""
