"""Rules about the driver."""
