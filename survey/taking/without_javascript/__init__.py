"""Serve pages of the survey as plain forms, where no JavaScript runs."""
