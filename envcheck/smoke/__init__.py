"""Runs something small on the GPU, in child processes, and turns what happened into facts."""
