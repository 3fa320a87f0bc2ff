"""The load engine: many simulated browsers in one process, for a few µs each.

An HTTP library would cost as much as the server under test, and would hide
when a request was due. Standard library only; connects to this machine only.
"""
