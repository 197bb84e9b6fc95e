"""Many machines at once: their reports read into one picture, and hosts asked through Ansible."""
