"""Attack the suppression of small numbers with linear and integer programs.

`hierarchies` invents results, `demo` reads counted ones, `attacker` knows what is
published and nothing of `reports.suppression`, `means` does the same with scores, and
`optimum` finds the fewest cells that have to be hidden.
"""
