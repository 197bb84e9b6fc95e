"""Reads a machine into a snapshot."""
