"""The compatibility tables: their rows, how they are loaded, and the questions rules ask of them."""
