"""Steps 4 and 6 of a turn: the model is chosen, then model and tools take turns until there is an answer.

routing        step 4: a cheap model sorts the question, which sets the model and the number of steps
loop           step 6 for models with native tool calls
planning       step 6 for the others and for small ones: a plan, then the answer
steps          one model request or the tool calls of one reply, durable and recorded
step_record    the record of a step as JSON
outcome        the end of a turn: its answer or its failure
services       the services that every turn uses
"""
