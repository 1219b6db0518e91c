"""The one place that chooses implementations: configuration, scope, provider, engine, lease."""
