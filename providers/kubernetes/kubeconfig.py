"""Kubeconfig: the cluster, credentials and default namespace, from kubeconfig files, flags or the pod's service account."""

import base64
import ipaddress
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import yaml

from engine.errors import InputError
from engine.report.printable import clipped

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NO_CLUSTER = (
    "no cluster: there is no kubeconfig, and this process does not run in a pod;"
    " start one with `engine sandbox up`, or preview without one: `engine diff -f FILE --against empty`"
)
LOOKED_UP = "it is looked up in --kubeconfig, KUBECONFIG, ~/.kube/config, in this order"
SINGULAR: Mapping[str, str] = {"clusters": "cluster", "users": "user", "contexts": "context"}
FILES: Mapping[str, tuple[str, ...]] = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key", "tokenFile")}
"""Fields that name a file, relative to the folder of the kubeconfig."""
CLUSTER_INFO = frozenset({"server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"})
"""Fields of the cluster that are passed to a credential plugin; its protocol uses the same names."""


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


Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the configuration comes from: `--kubeconfig` and `--context`, else the environment, else the pod's service account."""

    path: str = ""
    context: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    account: Path = SERVICE_ACCOUNT


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """One cluster with the credentials for it: paths are absolute, and a token file has been read."""

    cluster: Config
    user: Config = field(repr=False)
    namespace: str = "default"
    from_files: bool = False
    """Whether the credentials come from files, which may be renewed."""

    def config(self, credentials: Config, folder: Path) -> dict[str, Any]:
        """A kubeconfig with this cluster and user only, for kr8s. `credentials` are what the user's plugin has returned.

        Inline certificates and keys are written to files in the folder: kr8s would write them to the temporary directory, and leave them
        there. Raises `binascii.Error`.
        """
        user = {**{key: value for key, value in self.user.items() if key != "exec"}, **credentials}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": _in_files(self.cluster, "cluster", folder)}],
            "users": [{"name": "here", "user": _in_files(user, "user", folder)}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here", "namespace": self.namespace}}],
        }
        # kr8s modifies it, and reads it as JSON: a copy, without the other types of YAML.
        copied: dict[str, Any] = orjson.loads(orjson.dumps(config, default=str, option=orjson.OPT_NON_STR_KEYS))
        return copied


def _in_files(entry: Config, singular: str, folder: Path) -> Config:
    """The entry with the paths of new files in the folder instead of inline data."""
    written = dict(entry)
    for key in FILES[singular]:
        if data := written.pop(f"{key}-data", None):
            written[key] = str(folder / key)
            (folder / key).write_bytes(data.encode() if "-----" in data else base64.b64decode(data))
    return written


def cluster_access(source: Source) -> ClusterAccess:
    """Read the configuration now. Raises `InputError` with the file and what is wrong with it."""
    merged = _merged(_files(source))
    if merged["contexts"] or source.context:
        return _access_of_context(merged, source)
    return _in_cluster(source)


def _files(source: Source) -> list[Path]:
    """The files that exist. The file of `--kubeconfig` must exist, and at least one of those in `KUBECONFIG`."""
    if source.path:
        return [_existing(Path(source.path).expanduser())]
    if listed := [Path(name) for name in source.environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        return [path for path in listed if path.exists()] or [_existing(listed[0])]
    default = Path(source.environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [default] if default.exists() else []


def _existing(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"kubeconfig {_printable(path)}: no such file; {LOOKED_UP}")
    return path


def _merged(files: Iterable[Path]) -> dict[str, Any]:
    """All files merged. Where two files have an entry of the same name, the first one counts, as with kubectl."""
    merged: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for path in files:
        config = _read(path)
        for plural in SINGULAR:
            merged[plural] = {**_entries(config, plural, path), **merged[plural]}
        merged["current-context"] = merged["current-context"] or str(config.get("current-context") or "")
    return merged


def _read(path: Path) -> Config:
    try:
        config = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except yaml.YAMLError as error:
        # Without the parser's message: it quotes the file, which contains keys.
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"kubeconfig {_printable(path)}{line}: not valid YAML") from None
    except OSError as error:
        raise InputError(f"kubeconfig {_printable(path)}: {os.strerror(error.errno or 0).lower()}") from None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise InputError(f"kubeconfig {_printable(path)}: not a kubeconfig, which is a mapping with clusters, users and contexts")
    return config


def _entries(config: Config, plural: str, path: Path) -> dict[str, Config]:
    """Name -> entry of one of the lists of a kubeconfig (`clusters`, `users`, `contexts`), with absolute paths."""
    entries: dict[str, Config] = {}
    listed = config.get(plural) or []
    if not isinstance(listed, list):
        raise InputError(f"kubeconfig {_printable(path)}: {plural} must be a list")
    for index, entry in enumerate(listed):
        inner = (entry.get(SINGULAR[plural]) or {}) if isinstance(entry, dict) else None
        if not isinstance(inner, dict) or not isinstance(entry.get("name"), str):
            raise InputError(f"kubeconfig {_printable(path)}: {plural}[{index}] must have a name and a mapping named {SINGULAR[plural]}")
        entries.setdefault(entry["name"], _with_absolute_paths(inner, SINGULAR[plural], path.absolute().parent))
    return entries


def _with_absolute_paths(entry: Config, singular: str, folder: Path) -> Config:
    """The entry with absolute paths. Inline data takes precedence over a file."""
    resolved = dict(entry)
    for key in FILES.get(singular, ()):
        if resolved.get(key):
            resolved[key] = str(folder / str(resolved[key]))
        if resolved.get(f"{key}-data"):
            resolved.pop(key, None)
    plugin = resolved.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
        resolved["exec"] = {**plugin, "command": str(folder / str(plugin["command"]))}
    return resolved


def _access_of_context(merged: Config, source: Source) -> ClusterAccess:
    """The cluster and credentials of the chosen context, else of the current one."""
    name = source.context or merged["current-context"]
    known = ", ".join(clipped(context, 80) for context in list(merged["contexts"])[:20]) or "none"
    if not name:
        raise InputError(f"the kubeconfig has no current context; choose one with --context (known: {known})")
    if name not in merged["contexts"]:
        raise InputError(f"no context {clipped(name, 80)} in the kubeconfig (known: {known})")
    context = merged["contexts"][name]
    cluster = _checked_cluster(_referenced(merged, "cluster", context, name), name, source.environ)
    user = _referenced(merged, "user", context, name) if context.get("user") else {}
    from_files = any(user.get(key) for key in FILES["user"])
    return ClusterAccess(cluster, _checked_user(user, cluster, name), str(context.get("namespace") or "default"), from_files)


def _referenced(merged: Config, singular: str, context: Config, name: str) -> Config:
    """The cluster or user (`singular`) that the context refers to."""
    entry_name = str(context.get(singular) or "")
    entry: Config | None = merged[f"{singular}s"].get(entry_name)
    if entry is None:
        raise InputError(f"context {clipped(name, 80)}: no {singular} {clipped(entry_name, 80)} in the kubeconfig")
    return entry


def _checked_cluster(cluster: Config, name: str, environ: Mapping[str, str]) -> Config:
    """The cluster of the context `name`, with its proxy. Raises `InputError` for an unusable server, proxy or file."""
    where = f"context {clipped(name, 80)}"
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")) or "@" in server:
        raise InputError(f"{where}: its cluster needs a server such as https://HOST:PORT, without a user name")
    _require_files(cluster, "cluster", where)
    try:
        proxy = proxy_for(server, str(cluster.get("proxy-url") or ""), environ)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    return {
        **{key: value for key, value in cluster.items() if key != "proxy-url"},
        "server": server,
        **({"proxy-url": proxy} if proxy else {}),
    }


def _checked_user(user: Config, cluster: Config, name: str) -> Config:
    """The user of the context `name`, with the token that its file contains now. Raises `InputError`."""
    _require_files(user, "user", f"context {clipped(name, 80)}")
    checked = {key: value for key, value in user.items() if key != "tokenFile"}
    if user.get("tokenFile"):
        checked["token"] = _text(Path(user["tokenFile"]))
    if isinstance(user.get("exec"), dict):
        checked["exec"] = _with_cluster_info(user["exec"], cluster, name)
    return checked


def _with_cluster_info(plugin: Config, cluster: Config, name: str) -> Config:
    """The credential plugin with the variable in which it expects a description of the cluster."""
    if not plugin.get("command") or not plugin.get("apiVersion"):
        raise InputError(f"context {clipped(name, 80)}: its credential plugin needs a command and an apiVersion")
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {key: value for key, value in cluster.items() if key in CLUSTER_INFO}
    info = orjson.dumps({"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}).decode()
    return {**plugin, "env": [*(plugin.get("env") or ()), {"name": "KUBERNETES_EXEC_INFO", "value": info}]}


def _require_files(entry: Config, singular: str, where: str) -> None:
    for key in FILES[singular]:
        if entry.get(key) and not Path(entry[key]).is_file():
            raise InputError(f"{where}: {key} {_printable(entry[key])}: no such file")


def _in_cluster(source: Source) -> ClusterAccess:
    """The API server in the pod's environment, with the pod's service account."""
    host, port = (source.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port or not (source.account / "token").is_file():
        raise InputError(NO_CLUSTER)
    authority, namespace = source.account / "ca.crt", source.account / "namespace"
    cluster = {"server": f"https://{f'[{host}]' if ':' in host else host}:{port}", "certificate-authority": str(authority)}
    _require_files(cluster, "cluster", "service account")
    return ClusterAccess(
        cluster,
        {"token": _text(source.account / "token")},
        (_text(namespace) if namespace.is_file() else "") or "default",
        from_files=True,
    )


def _text(path: Path) -> str:
    """The content of an ASCII file, such as a token, without surrounding white space. Raises `InputError`."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{_printable(path)}: cannot be read as text") from None


def _printable(path: object) -> str:
    return clipped(str(path), 200)
