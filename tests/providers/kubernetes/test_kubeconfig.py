"""Kubeconfig: what is wrong with it is reported in one line, and everything else is read as kubectl reads it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.errors import InputError
from providers.kubernetes.kubeconfig import ClusterAccess, Source, cluster_access, proxy_for

CLUSTERS = [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}]
USERS = [{"name": "u", "user": {"token": "s3cr3t"}}]


def context(name: str, **fields: str) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": "c", "user": "u", **fields}}


def written(path: Path, **fields: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"clusters": CLUSTERS, "users": USERS, "contexts": [context("one")], "current-context": "one", **fields}))
    return path


def access(
    path: object = "", *, context: str = "", environ: Mapping[str, str] | None = None, account: Path = Path("/nowhere")
) -> ClusterAccess:
    return cluster_access(Source(str(path), context, {"HOME": "/nowhere", **(environ or {})}, account))


def error_of(path: object = "", **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        access(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_any_configuration_one_line_says_what_to_do() -> None:
    message = error_of()

    assert "engine sandbox up" in message
    assert "--against empty" in message


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    looked_up = "it is looked up in --kubeconfig, KUBECONFIG, ~/.kube/config, in this order"
    assert error_of(tmp_path / "absent") == f"kubeconfig {tmp_path / 'absent'}: no such file; {looked_up}"
    assert error_of(environ={"KUBECONFIG": "/absent/one:/absent/two"}) == f"kubeconfig /absent/one: no such file; {looked_up}"


def test_invalid_yaml_is_reported_with_its_line_and_without_its_text(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("clusters: []\nusers:\n- name: u\n  user: {token: s3cr3t: oops}\n")

    message = error_of(tmp_path / "config")

    assert message == f"kubeconfig {tmp_path / 'config'}, line 4: not valid YAML"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "not a kubeconfig"),
        ("contexts: {a: b}", "contexts must be a list"),
        ("users: [{user: {}}]", r"users\[0\] must have a name"),
        ("clusters: [{name: c, cluster: s3cr3t}]", r"clusters\[0\] must have a name and a mapping named cluster"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_reported(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config").write_text(text)

    with pytest.raises(InputError, match=message) as caught:
        access(tmp_path / "config")
    assert "s3cr3t" not in str(caught.value)


def test_a_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    assert error_of(tmp_path).endswith("is a directory")


def test_an_unknown_context_is_reported_with_the_known_ones(tmp_path: Path) -> None:
    config = written(tmp_path / "config", contexts=[context("one"), context("t\x1bwo")])

    assert error_of(config, context="three") == "no context three in the kubeconfig (known: one, t\\x1bwo)"


def test_without_a_current_context_none_is_guessed(tmp_path: Path) -> None:
    config = written(tmp_path / "config", **{"current-context": ""})

    assert error_of(config) == "the kubeconfig has no current context; choose one with --context (known: one)"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"contexts": [context("one", cluster="x")]}, "context one: no cluster x in the kubeconfig"),
        ({"contexts": [{"name": "one", "context": {"cluster": ["x"]}}]}, "context one: no cluster ['x'] in the kubeconfig"),
        ({"contexts": [context("one", user="x")]}, "context one: no user x in the kubeconfig"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "context one: its cluster needs a server"),
        ({"clusters": [{"name": "c", "cluster": {"server": "10.0.0.1"}}]}, "context one: its cluster needs a server"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://me:s3cr3t@h"}}]}, "without a user name"),
        ({"users": [{"name": "u", "user": {"client-key": "absent.key"}}]}, "absent.key: no such file"),
        ({"users": [{"name": "u", "user": {"exec": {"command": "x"}}}]}, "its credential plugin needs a command and an apiVersion"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://h", "proxy-url": "socks5://me:s3cr3t@p"}}]}, "the proxy must be"),
    ],
)
def test_an_incomplete_context_is_reported_with_what_it_lacks(tmp_path: Path, part: dict[str, object], expected: str) -> None:
    message = error_of(written(tmp_path / "config", **part))

    assert expected in message
    assert "s3cr3t" not in message


def test_the_namespace_is_that_of_the_selected_context(tmp_path: Path) -> None:
    config = written(tmp_path / "config", contexts=[context("one", namespace="a"), context("two", namespace="b"), context("three")])

    assert [access(config, context=name).namespace for name in ("", "two", "three")] == ["a", "b", "default"]


def test_of_several_files_the_first_entry_of_a_name_counts_and_missing_files_are_ignored(tmp_path: Path) -> None:
    first = written(tmp_path / "a" / "config", clusters=[], users=[{"name": "u", "user": {"token": "first"}}], **{"current-context": ""})
    second = written(tmp_path / "b" / "config", users=[{"name": "u", "user": {"token": "second"}}], contexts=[context("two")])
    written(
        tmp_path / "b" / "config",
        users=[{"name": "u", "user": {"token": "second"}}],
        contexts=[context("two")],
        **{"current-context": "two"},
    )
    environ = {"KUBECONFIG": f"{first}:{tmp_path / 'absent'}:{second}"}

    both = access(environ=environ)
    other = access(environ=environ, context="one")

    assert (both.user["token"], both.cluster["server"]) == ("first", "https://10.0.0.1:6443")
    assert other.user["token"] == "first"


def test_paths_are_relative_to_the_kubeconfig_that_contains_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "elsewhere" / "pki").mkdir(parents=True)
    for folder, text in ((tmp_path, "right"), (tmp_path / "elsewhere", "wrong")):
        (folder / "pki" / "token").write_text(text)
        (folder / "pki" / "ca.crt").write_text(text)
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = written(
        tmp_path / "config",
        clusters=[{"name": "c", "cluster": {"server": "https://h", "certificate-authority": "pki/ca.crt"}}],
        users=[{"name": "u", "user": {"tokenFile": "pki/token"}}],
    )

    result = access("../config")

    assert (result.user["token"], result.from_files) == ("right", True)
    assert Path(result.cluster["certificate-authority"]).read_text() == "right"
    assert config.exists()


def test_the_default_kubeconfig_takes_precedence_over_the_service_account(tmp_path: Path) -> None:
    written(tmp_path / ".kube" / "config")
    environ = {"HOME": str(tmp_path), **pod(tmp_path / "account")}

    assert access(environ=environ, account=tmp_path / "account").user["token"] == "s3cr3t"


def pod(account: Path, host: str = "10.96.0.1") -> dict[str, str]:
    """The environment of a pod, and its service account."""
    account.mkdir()
    (account / "token").write_text("of-the-pod\n")
    (account / "ca.crt").write_text("authority")
    (account / "namespace").write_text("grove-system")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}


def test_in_a_pod_its_service_account_is_used_and_its_namespace_is_the_default(tmp_path: Path) -> None:
    account = tmp_path / "account"

    result = access(environ=pod(account), account=account)

    assert result.cluster == {"server": "https://10.96.0.1:443", "certificate-authority": str(account / "ca.crt")}
    assert (result.user, result.namespace, result.from_files) == ({"token": "of-the-pod"}, "grove-system", True)


def test_a_cluster_of_ipv6_addresses_is_reached_from_its_pods(tmp_path: Path) -> None:
    account = tmp_path / "account"

    assert access(environ=pod(account, "fd00::1"), account=account).cluster["server"] == "https://[fd00::1]:443"


def test_the_repr_shows_no_secrets(tmp_path: Path) -> None:
    config = written(tmp_path / "config")

    assert "s3cr3t" not in repr(access(config))


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://api.example.com:6443", {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("http://api.example.com", {"HTTPS_PROXY": "http://proxy:3128"}, ""),
        ("https://api.example.com", {"https_proxy": "http://proxy:1", "NO_PROXY": "other.com, example.com"}, ""),
        ("https://badexample.com", {"https_proxy": "http://proxy:1", "NO_PROXY": ".example.com"}, "http://proxy:1"),
        ("https://10.1.2.3", {"https_proxy": "http://proxy:1", "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://10.1.2.3", {"https_proxy": "http://proxy:1", "NO_PROXY": "*"}, ""),
        ("https://127.0.0.1:6443", {"https_proxy": "http://proxy:1"}, ""),
        ("https://localhost:6443", {"https_proxy": "http://proxy:1"}, ""),
    ],
)
def test_the_proxy_of_the_environment_is_used_where_it_applies(server: str, environ: dict[str, str], proxy: str) -> None:
    assert proxy_for(server, "", environ) == proxy


def test_the_proxy_of_the_kubeconfig_takes_precedence() -> None:
    assert proxy_for("https://h", "http://configured:1", {"https_proxy": "http://environment:1"}) == "http://configured:1"
