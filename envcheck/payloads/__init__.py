"""Scripts that other interpreters run as files; never imported."""
