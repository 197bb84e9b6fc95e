"""Brings tables up to date from the wheels of a package index: read, derive, merge, show.

Nothing here runs unless `envcheck tables refresh` is asked for; no address of an index is kept.
"""
