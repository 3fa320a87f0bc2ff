"""A whole fleet on one machine: `provisioning/run drill_fleet`."""
