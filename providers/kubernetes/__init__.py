"""A client of real API servers: kr8s for credentials, TLS and look-ups, aiohttp for requests."""
