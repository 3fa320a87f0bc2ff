"""Install, start, watch, promote and rebuild the stack of one machine.

The servers themselves are in `provisioning/ansible`. `servers` starts private
ones, for tests and measurements.
"""
