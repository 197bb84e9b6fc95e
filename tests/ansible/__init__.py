"""The Ansible collection and what `envcheck emit` writes for fleets, run for real."""
