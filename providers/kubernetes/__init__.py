"""A client of real API servers: kr8s for kubeconfig, credentials and TLS, aiohttp for requests."""
