"""An attacker of everything with figures that a role can get.

`states` invents people, `database` stores them and lets the product release their
results, `stories` changes them between two releases, `outputs` reads what each role
gets, `knowledge` turns that into equations, and `bounds` solves these; `means` does
the same with scores. `histories` are attacks that have once succeeded.
"""
