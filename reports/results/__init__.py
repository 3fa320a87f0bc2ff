"""Roll-ups of the answers to each item: see README.md."""
