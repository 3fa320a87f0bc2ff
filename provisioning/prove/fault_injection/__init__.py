"""Break a stack under load, and judge what became of each save.

`start` reads the options and prepares the environment, and `__main__` runs in it.
"""
