"""Ports: what plug-ins implement and what the core needs from outside. Pure: a plug-in never meets a client."""
