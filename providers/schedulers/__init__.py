"""Scheduler back ends, each a pure implementation of `resources.ports.Scheduler`."""
