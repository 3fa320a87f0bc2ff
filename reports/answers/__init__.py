"""Read who has answered what: see README.md."""
