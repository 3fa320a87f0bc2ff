"""Scores of schools on the measures of a survey: see README.md."""
