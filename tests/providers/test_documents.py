"""YAML and JSON become values, or an error with file, line and reason."""

import json
import time
from typing import Any

import pytest

from engine.errors import InputError
from providers.documents import Document, read_documents


def read(text: str | bytes, source: str = "f.yaml") -> list[Document]:
    """The documents of a text."""
    return list(read_documents(text if isinstance(text, bytes) else text.encode(), source))


def value(text: str, source: str = "f.yaml") -> Any:
    """The value of the only document."""
    (document,) = read(text, source)
    return document.value


def test_every_document_is_read_and_empty_ones_are_skipped() -> None:
    assert [document.value for document in read("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n")] == [{"a": 1}, {"b": 2}]


def test_a_field_has_its_line_and_a_missing_one_that_of_its_parent() -> None:
    (document,) = read("# head\na:\n  b:\n  - c: 1\n    d: x\n")

    assert document.place(("a", "b", "0", "d")) == "f.yaml:5"
    assert document.place(("a", "b", "0", "zzz")) == "f.yaml:4"
    assert document.place(("a",)) == "f.yaml:2"


INDENTED = "the line is not indented as the others of its"
TOO_FAR = "the line is indented too far, or a value with a colon has no quotes"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", True),
        ("off", False),
        ("0755", 0o755),
        ("0o17", 15),
        ("0x1F", 31),
        ("-12", -12),
        ("1.50", 1.5),
        ("1e3", 1000),
        ("1_000", 1000),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("100m", "100m"),
        ("089", 89),
        ("~", None),
        ("'yes'", "yes"),
        ("!!str 12", "12"),
        ("18446744073709551616", 18446744073709551616.0),
        ("9223372036854775808", 9223372036854775808.0),
        ("0X1F", 31),
        ("0xFFFFFFFFFFFFFFFF", 18446744073709551615.0),
        ("0xFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFF"),
        ("0b-1", -1),
        ("._1", "._1"),
        (".5_0", 0.5),
        ("! 12", "12"),
        ("- ", [None]),
    ],
)
def test_plain_scalars_have_the_values_that_kubectl_gives_them(text: str, expected: object) -> None:
    actual = value(f"a: {text}\n" if text != "- " else "a:\n- \n")["a"]

    assert actual == expected and type(actual) is type(expected)


def test_aliases_and_merges_are_resolved() -> None:
    assert value("base: &b {x: 1, z: 2}\nmore:\n  <<: *b\n  z: 3\nagain: *b\n") == {
        "base": {"x": 1, "z": 2},
        "more": {"x": 1, "z": 3},
        "again": {"x": 1, "z": 2},
    }


@pytest.mark.parametrize(
    ("merging", "expected"),
    [
        ("{<<: *b, x: own}", {"x": "own", "z": "b"}),
        ("{<<: [*b, *d], z: own}", {"x": "b", "z": "own", "u": "d"}),
        ("{z: b, <<: *b}", {"x": "b", "z": "b"}),
        ("{z: {v: 1, w: 2}, <<: {z: {w: 2, v: 1.0}}}", {"z": {"v": 1, "w": 2}}),
        ("{<<: *b, <<: {u: d}}", {"x": "b", "z": "b", "u": "d"}),
        ("{!!merge <<: *b}", {"x": "b", "z": "b"}),
        ("{'<<': *b}", {"<<": {"x": "b", "z": "b"}}),
    ],
)
def test_merges_that_every_reader_understands_alike_are_read(merging: str, expected: object) -> None:
    assert value(f"b: &b {{x: b, z: b}}\nd: &d {{x: d, u: d}}\na: {merging}\n")["a"] == expected


@pytest.mark.parametrize(
    ("merging", "names"),
    [
        *(("x: own\n  <<: *b", "x"), ("<<: *d\n  <<: *b", "x"), ("z: 1\n  x: 2\n  <<: [*d, *b]", "x, z")),
        *(("x: {v: [1]}\n  <<: {x: {v: [true]}}", "x"), ("x: {v: false}\n  <<: {x: {v: 0}}", "x")),
    ],
)
def test_a_merge_that_kubectl_and_kustomize_read_differently_is_refused_with_its_line(merging: str, names: str) -> None:
    with pytest.raises(InputError) as error:
        read(f"b: &b {{x: b, z: b}}\nd: &d {{x: d, u: d}}\na:\n  {merging}\n")

    line = 4 + merging.count("\n")
    assert (
        str(error.value) == f"f.yaml:{line}: kubectl lets this `<<` replace {names} above it, kustomize does not: write one `<<`, and first"
    )


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        *((word, "true") for word in ("y", "Y", "yes", "on", "true", "True", '!!bool "y"')),
        *((word, "false") for word in ("n", "no", "off")),
        *(("1", "1"), ("-1", "-1"), ("+12", "12"), ("0x10", "16"), ("0755", "493"), ("0o17", "15"), ("1_000", "1000"), ("0xE", "14")),
        *(("1.5", "1.5"), ("2001-01-01", "2001-01-01"), ('"y"', "y"), ("!!str y", "y"), ('!!int "1"', "1"), ("=", "=")),
    ],
)
def test_keys_are_those_that_kubectl_reads(key: str, expected: str) -> None:
    assert value(f"a: {{{key}: x}}\n") == {"a": {expected: "x"}}


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("~", "a key must not be null"),
        ("null", "a key must not be null"),
        ("1e3", "the key 1e3 is a number: put it in quotes"),
        ("1.50", "the key 1.50 is a number: put it in quotes"),
        ("1.0e7", "the key 1.0e7 is a number: put it in quotes"),
        ("18446744073709551616", "the key 18446744073709551616 is a number: put it in quotes"),
    ],
)
def test_keys_that_kubectl_cannot_read_or_spells_otherwise_are_refused(key: str, why: str) -> None:
    with pytest.raises(InputError) as error:
        read(f"a:\n  {key}: x\n")

    assert str(error.value) == f"f.yaml:2: {why}"


ONE, TWO = '{"name": "one"}', '{"name":\n"two"}'


@pytest.mark.parametrize("source", ["f.json", "f.yaml", "<stdin>"])
@pytest.mark.parametrize(
    ("between", "line"),
    [
        *(("", 1), ("\n", 2), ("\n\n", 3), ("\n---\n", 3), ("\n---\n---\n", 4), ("\n# more\n---\n", 4), ("\n---\n\ufeff", 3)),
        *(("\nnull\n", 3), ("null", 1), ("\n\ufeff", 2)),
    ],
)
def test_json_documents_may_follow_one_another(source: str, between: str, line: int) -> None:
    first, second = read(f"{ONE}{between}{TWO}\n", source)

    assert (first.value, second.value) == ({"name": "one"}, {"name": "two"})
    assert second.place(("name",)) == f"{source}:{line}"


def test_yaml_may_follow_json_and_json_yaml() -> None:
    first, second = read(f"{ONE}\n---\nname: two\n")
    other, last = read(f"name: two\n---\n{ONE}\n")

    assert (first.value, second.value, other.value, last.value) == ({"name": "one"}, {"name": "two"}, {"name": "two"}, {"name": "one"})
    assert second.place(("name",)) == "f.yaml:3"


MARK = "\ufeff"


@pytest.mark.parametrize(
    "separator",
    [
        *(f"---\n{MARK}", f"--- # next\n{MARK}", f"---\n{MARK}---\n", f"{MARK}---\n", f"---\n\n# next\n{MARK}"),
        *(f"---\r\n\r\n{MARK}", "---# next\n"),
    ],
)
def test_a_later_document_may_begin_with_a_byte_order_mark_or_a_comment(separator: str) -> None:
    assert [document.value for document in read(f"{MARK}a: 1\n{separator}b: 2\n")] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("line", ["# licence\r\n", "  # licence\r\n", "\r\n", "#\r\r\r\r\n", "--- #\r\n", "---\n"])
def test_a_long_header_is_read_in_time_that_grows_with_its_length(line: str) -> None:
    """With a reading that grows twofold for each line this test would never end."""
    assert [document.value for document in read(f"---\r\n{line * 300}a: 1\r\n") if document.value] == [{"a": 1}]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_what_a_shell_of_windows_writes_is_read(encoding: str) -> None:
    text = f"{MARK}a: é\n---\nb: 2\n"

    assert [document.value for document in read_documents(text.encode(encoding), "f.yaml")] == [{"a": "é"}, {"b": 2}]
    with pytest.raises(InputError, match=r"^f.yaml:3: not UTF-16-[LB]E text$"):
        list(read_documents(text.encode(encoding)[:-1], "f.yaml"))


@pytest.mark.parametrize("text", ["a: 1\n...\nb: 1\n", "{a: 1}\n{b: 1}\n", f"---\n{ONE}\n{ONE}\n"])
def test_a_missing_separator_of_documents_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"^f.yaml:[23]: not YAML: the document above has ended: a line `---` is missing$"):
        read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{ONE},\n{TWO}", "f.json:1: neither JSON nor a line `---`"),
        (f"{ONE}\nname: two\n", "f.json:2: neither JSON nor a line `---`"),
        (f"{ONE}\n{{", "f.json:2: not JSON: Expecting property name enclosed in double quotes"),
        (f"{ONE}\n---\nname: [\n", "f.json:4: not YAML: did not find expected node content"),
    ],
)
def test_what_follows_a_json_document_and_cannot_be_read_is_reported_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(text, "f.json")

    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n\tc: d\n", "f.yaml:2: not YAML: a tab indents this line: use spaces"),
        ("a:\n  b: 1\n\tc: d\n", "f.yaml:3: not YAML: a tab indents this line: use spaces"),
        ("a:\n  - b\n \t- c\n", "f.yaml:3: not YAML: a tab indents this line: use spaces"),
        ("a:\n  b: 1\n c: 2\n", f"f.yaml:3: not YAML: did not find expected key: {INDENTED} map"),
        ("a:\n  - 1\n  b: 2\n", f"f.yaml:3: not YAML: did not find expected '-' indicator: {INDENTED} list"),
        ("a: 1\n  b: 2\n", f"f.yaml:2: not YAML: mapping values are not allowed in this context: {TOO_FAR}"),
        ("a: [b\nc: d", "f.yaml:2: not YAML: did not find expected ',' or ']'"),
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: the key a appears twice"),
        ("# a\n%YAML 1.2\n---\na: 1\n", "f.yaml:2: kubectl reads no directives (%YAML, %TAG): leave them out"),
        ("a: 1\n...\n%TAG ! tag:x,2000:\n---\nb: 1\n", "f.yaml:3: kubectl reads no directives (%YAML, %TAG): leave them out"),
        ("a: 1\n--- {b: 1}\n", "f.yaml:2: kubectl reads nothing behind `---` on its line: begin a new one"),
        ("a: *x\n", "f.yaml:1: there is no anchor &x above this line"),
        ("a: &a [*a]\n", "f.yaml:1: there is no anchor &a above this line"),
        (
            "a: !!python/object/apply:os.system [id]\n",
            "f.yaml:1: the tag tag:yaml.org,2002:python/object/apply:os.system is not supported",
        ),
        ("a: !!binary aGk=\n", "f.yaml:1: the tag tag:yaml.org,2002:binary is not supported"),
        ("{[1]: 2}\n", "f.yaml:1: a key must be a plain string"),
        ("a: .inf\n", "f.yaml:1: .inf is not a JSON number"),
        ("a: 1e999\n", "f.yaml:1: the number is too large"),
        ("a:\n  <<: 3\n", "f.yaml:2: `<<` can only merge maps"),
        (b"a: 1\nb: \xff\n", "f.yaml:2: not UTF-8 text"),
        ("[" * 100_000, "f.yaml:1: nested deeper than 100 levels"),
        ("a: 1\nb: '\x1b'\n", "f.yaml:2: not YAML: control characters are not allowed"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_line(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(text)

    assert str(error.value) == message


def test_a_bomb_of_aliases_is_refused_before_it_uses_time_or_memory() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
    began = time.process_time()

    with pytest.raises(InputError, match="aliases repeat more than"):
        read(bomb)

    assert time.process_time() - began < 5


def test_more_bytes_than_the_limit_are_not_parsed() -> None:
    with pytest.raises(InputError, match="f.yaml: 5 bytes exceed the limit of 4"):
        list(read_documents(b"a: 1\n", "f.yaml", limit=4))


def test_json_is_parsed_as_json_and_its_fields_have_lines() -> None:
    (document,) = read('{\n\t"a": {\n\t\t"b": "\\ud83d\\ude00", "c": "\\/"}}', "f.json")
    (other,) = read('{\n\t"a": {\n\t\t"c": "/"}}', "f.json")

    assert document.value == {"a": {"b": "😀", "c": "/"}}
    assert other.place(("a", "c")) == "f.json:3"


def test_numbers_of_json_are_those_of_yaml() -> None:
    numbers = value('{"a": 1.0, "b": 1e2, "c": 0.5, "d": 18446744073709551615}', "f.json")

    assert json.dumps(numbers) == json.dumps({"a": 1, "b": 100, "c": 0.5, "d": float(2**64)})


def test_a_block_of_text_at_the_end_of_a_file_without_a_line_break_ends_with_one() -> None:
    assert value("a: |\n  b") == {"a": "b\n"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"a": }', "f.json:2: not JSON: Expecting value"),
        ('{"a": 1, "a": 2}', "f.json:1: the key a appears twice"),
        ('{"a": 1,\n"a": 2,\n"b": {"c": 1, "c": 2}}', "f.json: the key c appears twice"),
        ('{"a": 1,\n"a": 2,\n"b": 1e999}', "f.json: the number is too large"),
        ('{"a":\n"\\ud800"}', "f.json:2: not JSON: half a surrogate pair is no character"),
        ('{"a": NaN}', "f.json: NaN is not a JSON number"),
        ('{"a": 1e999}', "f.json:1: the number is too large"),
        ('{"b": 1}\n{\n\t"a": 1,\n\t"a": 2}', "f.json:4: the key a appears twice"),
        ('{"a": ' + "1" * 5000 + "}", "f.json: the number is too large"),
        ("[" * 100_000, "f.json:1: nested deeper than 100 levels"),
        ("[" * 200 + "]" * 200, "f.json:1: nested deeper than 100 levels"),
    ],
)
def test_broken_json_is_reported_as_json(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(text, "f.json")

    assert str(error.value) == message
