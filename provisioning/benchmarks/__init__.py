"""What an installation can do, what that costs, and what a day will need.

`bench`, `capacity`, `group_commit`, `queries` and `saves` are the commands.
`load` offers the load; here it is metered, and made into figures.
"""
