"""Tests of what envcheck writes from a lock."""
