"""What can be done in the simulated Discord: each act checks rights, changes the state, and tells."""
