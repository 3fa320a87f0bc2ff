"""Draw results as charts, tables and sentences: see README.md."""
