"""Steps 3 and 5 of a turn: the model is chosen, then model and tools take turns until there is an answer."""
