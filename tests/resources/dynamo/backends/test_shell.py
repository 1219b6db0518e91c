"""Words of a command quoted for a shell line. What shells make of them is in test_argv.py."""

import pytest

from resources.dynamo.backends.shell import quoted

DECLARED = [{"name": "HOST", "value": "h"}]


def secret(optional: bool | None) -> dict[str, object]:
    reference = {"name": "s", "key": "k"} | ({} if optional is None else {"optional": optional})
    return {"name": "TOKEN", "valueFrom": {"secretKeyRef": reference}}


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("--model", "--model"),
        ("a b", "'a b'"),
        ("", "''"),
        ("it's", "'it'\"'\"'s'"),
        ("$HOME", "'$HOME'"),
        ("$$HOME", "'$HOME'"),
        ("$$(HOST)", "'$$(HOST)'"),
        ("$(id -u)", "'$$(id -u)'"),
        ("$(HOST)", '"$HOST"'),
        ("--address=$(HOST):80", '--address="$HOST":80'),
        ("a b$(HOST)c d", "'a b'\"$HOST\"'c d'"),
    ],
)
def test_a_word_is_quoted_and_a_reference_comes_from_the_environment(word: str, text: str) -> None:
    words = quoted([word], DECLARED)

    assert words.text == text
    assert list(words.envs) == DECLARED


@pytest.mark.parametrize("name", ["my-host", "my.host", "UNKNOWN", "IFS", "UID", "BASH_ENV"])
def test_a_variable_that_a_shell_may_not_know_arrives_by_another_name(name: str) -> None:
    alias = f"DYN_ARG_{name.replace('-', '_').replace('.', '_')}"
    words = quoted([f"a$({name})", f"$({name})"], [{"name": "IFS", "value": ","}])

    assert words.text == f'a"${alias}" "${alias}"'
    assert words.envs[1:] == ({"name": alias, "value": f"$({name})"},)


@pytest.mark.parametrize(("optional", "text"), [(None, '"$TOKEN"'), (False, '"$TOKEN"'), (True, '"$DYN_ARG_TOKEN"')])
def test_a_variable_that_may_be_missing_arrives_by_another_name(optional: bool | None, text: str) -> None:
    assert quoted(["$(TOKEN)"], [secret(optional)]).text == text


def test_two_variables_never_share_a_name() -> None:
    envs = [{"name": "DYN_ARG_a_b", "value": "of the user"}]
    words = quoted(["$(a-b)", "$(a.b)"], envs)

    assert words.text == '"$DYN_ARG_a_b_" "$DYN_ARG_a_b__"'
    assert [env["value"] for env in words.envs] == ["of the user", "$(a-b)", "$(a.b)"]
