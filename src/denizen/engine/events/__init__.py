"""Live events of running turns for whoever watches, and signals between the parts of this process."""
