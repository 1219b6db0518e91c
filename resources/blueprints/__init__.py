"""Blueprints: the desired objects of each kind of root."""
