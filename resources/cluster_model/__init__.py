"""Forecast: the model of a cluster that forecasts are made against: pods, deletions, Kubernetes' controllers, fabrics."""
