"""The compatibility tables: their rows, how they are loaded, and what rules ask of them."""
