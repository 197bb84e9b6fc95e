"""Messages that the table knows, found in text: a stage of its own between facts and rules."""
