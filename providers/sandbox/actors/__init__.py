"""Actors: the parts of a cluster that are not its API server, played by ordinary clients of that API.

Each is one coroutine that lists, watches, and acts on the current state and not on past events; so each may be stopped and started at any
time, and may run against a real API server as well as against the sandbox's. Their writes belong to a client of their own: what a kubelet
writes must not look like the engine's.
"""
