"""Language models: providers behind one port, over plain HTTP or over pydantic-ai's direct layer.

`providers` has one record for each kind of provider, and what is configured; `catalog` builds the models from it;
`model` makes one request with its retries and goes on to the fallbacks, through a `client`. `chat_client` is the one
for chat completions (`chat_request` is the body). `sdk_client` goes through vendors' libraries: `request` and `reply`
translate for it, and `vendors` constructs their classes. `failures` turns what goes wrong into our errors.
`embedded` runs the built-in model.

Nothing is imported here, so that start-up pays for no vendor.
"""
