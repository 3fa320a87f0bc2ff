"""Rehearse with JMeter, which shares no code with the application.

The commands `run`, `ladder`, `server` and `install`, the plan and the service
levels are in the folder `jmeter/` at the top.
"""
