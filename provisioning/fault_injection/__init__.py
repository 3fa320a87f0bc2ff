"""Break a stack under load, and judge what became of each save.

`start` prepares the environment, and `__main__` runs in it; see README.md.
"""
