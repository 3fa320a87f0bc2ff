"""Every route, every method, every role: what the access matrix is made of."""
