"""Describe an export for other programs: DDI-Codebook, Data Package, and syntax."""
