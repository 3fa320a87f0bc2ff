"""Exports of responses as CSV and Excel files, with codebooks."""
