"""Plans stacks: candidates from the tables, judged by the same rules as a machine."""
