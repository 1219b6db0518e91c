"""Ports: the protocols that plug-ins implement, and the values that cross them. Pure: a plug-in never calls an API server."""
