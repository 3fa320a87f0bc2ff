"""Health checks, metrics and logs, for engineers on call."""
