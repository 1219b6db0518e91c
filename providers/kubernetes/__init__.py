"""A client of real API servers: kr8s for kubeconfig, credentials and TLS, aiohttp for requests."""

import sys

# httpx would import its own command line, and with it rich and click: that takes longer than httpx itself.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
