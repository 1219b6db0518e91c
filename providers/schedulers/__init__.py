"""Schedulers: scheduler back ends, each a pure implementation of `resources.ports.scheduler.Scheduler`."""
