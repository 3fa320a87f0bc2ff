"""Responses out: one module for each format, over one stream of rows."""
