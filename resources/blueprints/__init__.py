"""Blueprints: what each kind of root means."""
