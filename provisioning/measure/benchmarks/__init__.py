"""Measure what an installation can do, and compute what a survey day needs.

`provisioning/measure/load` offers the load; here it is metered, and made into figures.
"""
