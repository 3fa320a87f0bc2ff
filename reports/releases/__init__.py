"""Count and store how each group answered each item: see README.md."""
