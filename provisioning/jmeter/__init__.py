"""Rehearsals with JMeter, an outsider that shares no code with what it loads.

`run`, `ladder`, `server` and `install` are the commands in `jmeter/`, where
the plan and the service levels are.
"""
