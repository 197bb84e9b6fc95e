"""Tells whether a GPU machine's software stack fits together, and what to type when it does not."""

__version__ = "0.1.0"
