"""Actors: the parts of a cluster that are not its API server, as ordinary clients of that API.

Each is one coroutine that lists, watches, and acts on the current state, so it can be restarted at any time, and can run against a real
API server as well. Each writes through a client of its own, under its own field manager.
"""
