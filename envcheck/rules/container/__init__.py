"""Rules about containers and their engines."""
