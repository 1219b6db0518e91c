"""Proxies: the HTTP proxy for a server, from the kubeconfig or the environment."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(server: str, configured: str, environ: Mapping[str, str]) -> str:
    """The URL of the proxy for that server, or empty. Raises `ValueError` for a proxy that is not an HTTP proxy.

    `configured` is the `proxy-url` of the kubeconfig and takes precedence. The environment's proxy is not used for this machine itself.
    """
    proxy = configured or _from_environment(server, environ)
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise ValueError("the proxy must be an http:// or https:// one")
    return proxy


def _from_environment(server: str, environ: Mapping[str, str]) -> str:
    parts = urlsplit(server)
    host = parts.hostname or ""
    if _is_this_machine(host) or any(_covers(entry.strip(), host) for entry in _variable(environ, "no_proxy").split(",")):
        return ""
    return _variable(environ, f"{parts.scheme}_proxy")


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _covers(entry: str, host: str) -> bool:
    """Whether an entry of `no_proxy` applies to the host: a domain with its subdomains, an address, a network, or `*`."""
    if not entry or entry == "*":
        return bool(entry)
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return f".{host}".endswith(f".{entry.removeprefix('*').lstrip('.')}")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
