"""Language models: providers behind one port, over pydantic-ai's direct layer.

`providers` has one record for each kind of provider, and what is configured; `catalog` builds the models from it;
`model` makes one request with its retries and goes on to the fallbacks; `request` and `reply` translate both ways;
`failures` turns what vendors raise into our errors; `vendors` is the only place that constructs vendor classes.
`embedded` runs the built-in model.

Nothing is imported here, so that start-up pays for no vendor.
"""
