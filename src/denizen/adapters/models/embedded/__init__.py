"""The embedded model: the one that answers when no provider is configured.

`catalogue` names the weights; `weights` gets them (with `parts`, `hub` and `pull`); `server` is the child process
that runs llama.cpp; `runtime` starts it and hands out its OpenAI-compatible endpoint; `template` and `gguf` read and
correct what the weights file says. Nothing is imported here: the child imports this package and stays small.
"""
