"""Container images as machines: read from their files, built, and run with the host's GPUs."""
