"""The stack of one machine: brought up, watched, reloaded, promoted, rebuilt.

What the servers are is said in `provisioning/ansible`; here is who calls it,
and where the outcome lives. `servers` makes a smaller one, for tests.
"""
