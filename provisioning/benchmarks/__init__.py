"""Measure what an installation can do, and compute what a survey day needs.

`bench`, `capacity`, `group_commit`, `queries` and `saves` are the commands.
`load` offers the load; here it is metered, and made into figures.
"""
