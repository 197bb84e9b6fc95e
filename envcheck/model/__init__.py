"""What envcheck knows and says: facts of a machine, findings about it, and their text form."""
