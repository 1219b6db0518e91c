"""Diagram: objects and what they depend on, as boxes and arrows: operations of a plan, or desired objects."""
