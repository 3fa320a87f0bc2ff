"""Publish results: frozen, for everybody, until they are withdrawn."""
