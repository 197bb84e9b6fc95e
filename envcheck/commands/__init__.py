"""One module per command: `run(args)` does its work and returns the exit status."""
