"""Read what is shown of how each group answered each item: see README.md."""
