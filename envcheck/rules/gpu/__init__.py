"""Rules about GPUs."""
