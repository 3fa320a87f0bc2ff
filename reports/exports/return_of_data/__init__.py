"""Return a district's data: one encrypted archive with all that explains them."""
