"""The tools that an agent may use in a step, and the arguments of their calls."""
