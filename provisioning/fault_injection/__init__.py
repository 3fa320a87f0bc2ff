"""Breaks a stack under load, and judges what became of each save.

`start` prepares the environment, `__main__` runs in it. `faults`, `wall` and
`proxy` break, `person` and `driver` save meanwhile and write down what they
were told, `verdict` compares that with what PostgreSQL holds at the end.
"""
