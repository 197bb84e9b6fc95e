"""What each command takes: one module per command, its page of help and its arguments."""
