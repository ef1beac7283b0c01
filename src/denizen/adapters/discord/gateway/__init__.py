"""TODO gateway."""
