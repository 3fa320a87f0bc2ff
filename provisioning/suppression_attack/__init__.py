"""Attack the suppression of small numbers with linear and integer programs.

`hierarchies` invents results, `database` stores them as the product does, and `demo`
reads counted ones. `attacker` bounds every hidden number from all places and groups,
and `readers` does so as the public and as coordinators, from what `views` reads with
the functions of pages, files and response rates. `waves` does so with two waves of the
same people, `means` with scores, and `optimum` finds the fewest cells that have to be
hidden.
"""
