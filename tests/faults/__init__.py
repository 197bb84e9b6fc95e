"""Sick machines and hostile input: envcheck answers on all of them and makes nothing worse."""
