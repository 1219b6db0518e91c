"""The cluster over the wire: kr8s for kubeconfig, credentials and TLS, one aiohttp session for every request."""
