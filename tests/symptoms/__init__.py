"""Known messages: the table, the scanner, and what texts come to."""
