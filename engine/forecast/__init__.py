"""Forecast: the passes that follow the first one, computed against a model of how a cluster answers. Pure."""
