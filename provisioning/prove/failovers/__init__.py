"""Make the primary of a fleet fail under load: `provisioning/run failovers`."""
