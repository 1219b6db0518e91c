"""Shell scripts read as simple commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.dynamo.backends.script import UnreadableScript, has_commands, read_script

PIECES = ["a", " ", "'", '"', "\\", "$(", ")", "`", "${", "}", "<<E", "\n", "#", ";", "&", "|", ">", "<(", "$'", "E"]


def words(script: str) -> list[list[str]]:
    return [[word.text for word in command if not word.is_redirection] for command in read_script(script).commands]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        ("a b", [["a", "b"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a; b && c || d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a \\\n  b\nc", [["a", "b"], ["c"]]),
        ("a # b\nc#d", [["a"], ["c#d"]]),
        ("(a; b)", [["a"], ["b"]]),
        ("a >f 2>&1 <g b", [["a", "b"]]),
        ("a $(b; c) d", [["a", "$(b; c)", "d"]]),
        ("a $((1 + 2)) ${b:-c d} `e f`", [["a", "$((1 + 2))", "${b:-c d}", "`e f`"]]),
        ('a "$(b "c;" )" d', [["a", '$(b "c;" )', "d"]]),
        ("a <(b; c) d", [["a", "<(b; c)", "d"]]),
        ("a <<E\nb 'c\nE\nd", [["a"], ["d"]]),
        ("a <<-'E'\n\tb\n\tE\nd", [["a"], ["d"]]),
        ("a <<<b c", [["a", "c"]]),
        ("a $'b\\'c' d", [["a", "$'b\\'c'", "d"]]),
        ("a''b", [["ab"]]),
        ('a "<(b" "$\'c" "${d:-it\'s}" e', [["a", "<(b", "$'c", "${d:-it's}", "e"]]),
    ],
)
def test_a_script_is_split_as_a_shell_splits_it(script: str, expected: list[list[str]]) -> None:
    assert words(script) == expected


@pytest.mark.parametrize("script", ["'a", '"a', "a $(b", "a ${b", "a `b", "$(" * 2000, '"$(' * 2000])
def test_what_is_not_closed_is_not_read(script: str) -> None:
    with pytest.raises(UnreadableScript):
        read_script(script)


@given(st.lists(st.sampled_from(PIECES), max_size=15).map("".join))
def test_words_are_where_they_are_said_to_be(script: str) -> None:
    try:
        commands = read_script(script).commands
    except UnreadableScript:
        return

    ends = [0]
    for word in (word for command in commands for word in command):
        assert ends[-1] <= word.start < word.end <= len(script)
        ends.append(word.end)


@pytest.mark.parametrize("script", ["launch --x", "  python3 -m x 'y z' $HOME ", "a \\\n b"])
def test_one_program_with_arguments_is_a_program_call(script: str) -> None:
    assert read_script(script).is_program_call


@pytest.mark.parametrize("script", ["", "a; b", "a\nb", "(a)", "a | b", "A=1 b", "exec a", "cd /", "a > f", "if a; then b; fi", "a &"])
def test_anything_else_is_no_program_call(script: str) -> None:
    assert not read_script(script).is_program_call


@pytest.mark.parametrize(("script", "expected"), [("", False), (" \n", False), ("# a\n", False), ("# a\nb", True), ("a", True)])
def test_comments_are_no_commands(script: str, expected: bool) -> None:
    assert has_commands(script) == expected
