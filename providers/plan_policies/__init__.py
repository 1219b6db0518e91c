"""Policies: evaluates the expressions of plan policies, in a process of its own. The only place that imports the library for CEL."""
