"""Prompts that agents get at set times. `runner` runs what is due, `catalog` tells of it and runs by hand."""
