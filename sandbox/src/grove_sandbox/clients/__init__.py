"""Clients: how Python code and kubectl reach the sandbox."""
