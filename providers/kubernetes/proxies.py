"""Proxies: which one stands between us and a server, as the kubeconfig or the environment says."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(server: str, stated: str, environ: Mapping[str, str]) -> str:
    """The URL of the proxy for that server, or empty. Raises `ValueError` for one we cannot talk to.

    `stated` stands in the kubeconfig and goes before the environment, which is never asked for this machine itself.
    """
    proxy = stated or _of_environment(server, environ)
    if proxy and urlsplit(proxy).scheme not in ("http", "https"):
        raise ValueError("the proxy must be an http:// or https:// one")
    return proxy


def _of_environment(server: str, environ: Mapping[str, str]) -> str:
    parts = urlsplit(server)
    host = parts.hostname or ""
    if _is_this_machine(host) or any(_covers(rule.strip(), host) for rule in _variable(environ, "no_proxy").split(",")):
        return ""
    return _variable(environ, f"{parts.scheme}_proxy")


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _covers(rule: str, host: str) -> bool:
    """Whether an entry of `no_proxy` is about that host: a name with all below it, an address, a network, or everything."""
    if not rule or rule == "*":
        return bool(rule)
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return f".{host}".endswith(f".{rule.removeprefix('*').lstrip('.')}")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
