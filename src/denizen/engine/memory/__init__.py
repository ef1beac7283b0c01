"""Memory of agents: identity, core and user memory, and the search in earlier talk."""
