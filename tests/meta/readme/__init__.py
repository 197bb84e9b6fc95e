"""What the README shows, and what its examples need to run."""
