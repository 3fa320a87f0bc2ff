"""Simulate surveys of which the truth is known, and count what scores say wrongly."""
