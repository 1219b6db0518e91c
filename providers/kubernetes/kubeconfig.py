"""Kubeconfig: which cluster, who we are there and in which namespace, from the files, the flags or the pod we run in."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml

from engine.errors import InputError
from engine.report.printable import clipped
from providers.kubernetes.proxies import proxy_for

Config = Mapping[str, Any]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NOWHERE = (
    "no cluster: there is no kubeconfig, and this is not a pod of one;"
    " start one with `engine sandbox up`, or preview without one: `engine diff -f FILE --against empty`"
)
SINGULAR: Mapping[str, str] = {"clusters": "cluster", "users": "user", "contexts": "context"}
FILES: Mapping[str, tuple[str, ...]] = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key", "tokenFile")}
"""Fields that name a file, seen from the folder of the kubeconfig they stand in."""
TOLD = frozenset({"server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url"})
"""What a credential plugin may know of the cluster; its protocol uses the same words."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where to look: what `--kubeconfig` and `--context` say, else the environment, else the account of the pod."""

    path: str = ""
    context: str = ""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    account: Path = SERVICE_ACCOUNT


@dataclass(frozen=True, slots=True)
class Target:
    """One cluster and one user of it, complete: files named from the root, the token read."""

    cluster: Config
    user: Config = field(repr=False)
    namespace: str = "default"
    perishable: bool = False
    """Whether the credentials lie in files that somebody renews."""

    def config(self) -> dict[str, Any]:
        """The same as a kubeconfig that holds nothing else. A new one each time: its reader writes into it."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": dict(self.cluster)}],
            "users": [{"name": "here", "user": dict(self.user)}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here", "namespace": self.namespace}}],
        }


def target(source: Source) -> Target:
    """What the source leads to, read now. Raises `InputError`, naming the file and what is wrong with it."""
    merged = _merged(_files(source))
    if merged["contexts"] or source.context:
        return _target_of(merged, source)
    return _in_cluster(source)


def _files(source: Source) -> list[Path]:
    """The files that exist. One that was asked for must; of several in `KUBECONFIG` some may be missing, but not all."""
    if source.path:
        return [_present(Path(source.path).expanduser())]
    if listed := [Path(name) for name in source.environ.get("KUBECONFIG", "").split(os.pathsep) if name]:
        return [path for path in listed if path.exists()] or [_present(listed[0])]
    usual = Path(source.environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [usual] if usual.exists() else []


def _present(path: Path) -> Path:
    if not path.exists():
        raise InputError(f"kubeconfig {_shown(path)}: no such file")
    return path


def _merged(files: Iterable[Path]) -> dict[str, Any]:
    """All files as one. Where two name the same thing the first has it, as with kubectl."""
    merged: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for path in files:
        config = _read(path)
        for plural in SINGULAR:
            merged[plural] = {**_entries(config, plural, path), **merged[plural]}
        merged["current-context"] = merged["current-context"] or str(config.get("current-context") or "")
    return merged


def _read(path: Path) -> Config:
    try:
        config = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError as error:
        # Nothing of what the parser says: it quotes the file, and there are keys in it.
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"kubeconfig {_shown(path)}{line}: not valid YAML") from None
    except OSError as error:
        raise InputError(f"kubeconfig {_shown(path)}: {os.strerror(error.errno or 0).lower()}") from None
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise InputError(f"kubeconfig {_shown(path)}: not a kubeconfig, which is a mapping with clusters, users and contexts")
    return config


def _entries(config: Config, plural: str, path: Path) -> dict[str, Config]:
    entries: dict[str, Config] = {}
    listed = config.get(plural) or []
    if not isinstance(listed, list):
        raise InputError(f"kubeconfig {_shown(path)}: {plural} must be a list")
    for index, entry in enumerate(listed):
        inner = (entry.get(SINGULAR[plural]) or {}) if isinstance(entry, dict) else None
        if not isinstance(inner, dict) or not isinstance(entry.get("name"), str):
            raise InputError(f"kubeconfig {_shown(path)}: {plural}[{index}] must have a name and a mapping named {SINGULAR[plural]}")
        entries.setdefault(entry["name"], _rooted(inner, SINGULAR[plural], path.absolute().parent))
    return entries


def _rooted(entry: Config, singular: str, folder: Path) -> Config:
    """The entry with every file it names seen from the root; data that stands in the entry itself goes before a file."""
    rooted = dict(entry)
    for key in FILES.get(singular, ()):
        if rooted.get(key):
            rooted[key] = str(folder / str(rooted[key]))
        if rooted.get(f"{key}-data"):
            rooted.pop(key, None)
    plugin = rooted.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
        rooted["exec"] = {**plugin, "command": str(folder / str(plugin["command"]))}
    return rooted


def _target_of(merged: Config, source: Source) -> Target:
    name = source.context or merged["current-context"]
    known = ", ".join(clipped(context, 80) for context in list(merged["contexts"])[:20]) or "none"
    if not name:
        raise InputError(f"the kubeconfig has no current context; choose one with --context (known: {known})")
    if name not in merged["contexts"]:
        raise InputError(f"no context {clipped(name, 80)} in the kubeconfig (known: {known})")
    context = merged["contexts"][name]
    cluster = _checked_cluster(_part(merged, "cluster", context, name), name, source.environ)
    user = _part(merged, "user", context, name) if context.get("user") else {}
    perishable = any(user.get(key) for key in FILES["user"])
    return Target(cluster, _checked_user(user, cluster, name), str(context.get("namespace") or "default"), perishable)


def _part(merged: Config, singular: str, context: Config, name: str) -> Config:
    wanted = context.get(singular)
    found: Config | None = merged[f"{singular}s"].get(wanted)
    if found is None:
        raise InputError(f"context {clipped(name, 80)}: no {singular} {clipped(str(wanted or ''), 80)} in the kubeconfig")
    return found


def _checked_cluster(cluster: Config, name: str, environ: Mapping[str, str]) -> Config:
    where = f"context {clipped(name, 80)}"
    server = str(cluster.get("server") or "").rstrip("/")
    if not server.startswith(("https://", "http://")) or "@" in server:
        raise InputError(f"{where}: its cluster needs a server, as in https://HOST:PORT, and no user name in it")
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
    _require_files(user, "user", f"context {clipped(name, 80)}")
    checked = {key: value for key, value in user.items() if key != "tokenFile"}
    if user.get("tokenFile"):
        checked["token"] = _secret(Path(user["tokenFile"]))
    if isinstance(user.get("exec"), dict):
        checked["exec"] = _informed(user["exec"], cluster, name)
    return checked


def _informed(plugin: Config, cluster: Config, name: str) -> Config:
    """The credential plugin, told which cluster it is asked about, as the protocol promises it."""
    if not plugin.get("command") or not plugin.get("apiVersion"):
        raise InputError(f"context {clipped(name, 80)}: its credential plugin needs a command and an apiVersion")
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {key: value for key, value in cluster.items() if key in TOLD}
    info = orjson.dumps({"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}).decode()
    return {**plugin, "env": [*(plugin.get("env") or ()), {"name": "KUBERNETES_EXEC_INFO", "value": info}]}


def _require_files(entry: Config, singular: str, where: str) -> None:
    for key in FILES[singular]:
        if entry.get(key) and not Path(entry[key]).is_file():
            raise InputError(f"{where}: {key} {_shown(entry[key])}: no such file")


def _in_cluster(source: Source) -> Target:
    """The API server that every pod is told of, as the service account of this one."""
    host, port = (source.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port or not (source.account / "token").is_file():
        raise InputError(NOWHERE)
    authority, namespace = source.account / "ca.crt", source.account / "namespace"
    cluster = {"server": f"https://{f'[{host}]' if ':' in host else host}:{port}", "certificate-authority": str(authority)}
    _require_files(cluster, "cluster", "service account")
    return Target(
        cluster,
        {"token": _secret(source.account / "token")},
        (_secret(namespace) if namespace.is_file() else "") or "default",
        perishable=True,
    )


def _secret(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{_shown(path)}: cannot be read as text") from None


def _shown(path: object) -> str:
    return clipped(str(path), 200)
