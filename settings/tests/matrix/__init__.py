"""Request every route with every method as every role (the access matrix)."""
