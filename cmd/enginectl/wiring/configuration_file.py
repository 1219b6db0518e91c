"""ConfigurationFile: the operator configuration file, its errors and warnings with their lines, and whether it has changed."""

import os
import stat
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.errors import InputError
from engine.report.printable import clipped, printable
from enginectl.base.exit_codes import UsageError
from enginectl.base.files import STDIN, read_bytes
from providers.documents import Document, read_documents
from providers.registry import SCHEDULERS
from resources.base.fields import mapping, mappings
from resources.schema.issues import Path as FieldPath
from resources.schema.issues import Rejected, spelled
from resources.schema.unknown_fields import unknown_fields
from resources.settings import Settings, valid_settings
from resources.settings_fields import without_effect

MAX_BYTES = 1 << 20
"""The largest file that is read: a ConfigMap cannot be larger."""
MAX_FINDINGS = 1000
"""The largest number of errors, of warnings, and of fields without effect that are listed."""
TOO_MANY_DOCUMENTS = "a second document: the configuration is one document"


class Finding(Struct, frozen=True):
    """An error, a warning or a field without effect."""

    source: str
    """The file."""
    line: int | None
    """None if it concerns the whole file."""
    field: str
    """The path of the field; empty for the whole document."""
    message: str
    """One line that names the field and is safe to print."""

    def __str__(self) -> str:
        """`file:line: message`."""
        return f"{place(self.source, self.line)}: {self.message}"


class ConfigurationFile(Struct, frozen=True):
    """The settings of a file, and the findings about it, in the order of its lines."""

    settings: Settings | None
    """None if there are errors."""
    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    without_effect: tuple[Finding, ...] = ()
    """The fields that are accepted and have no effect in this engine."""


def read_configuration_file(path: Path) -> ConfigurationFile:
    """The operator configuration in a file; an empty file has all defaults. Raises `UsageError` if the file cannot be read."""
    return configuration_in(read_bytes(path), str(path))


def configuration_in(data: bytes, source: str) -> ConfigurationFile:
    """The operator configuration in a text; an empty text has all defaults. `source`: what the text is called in messages."""
    try:
        documents = list(read_documents(data, source, limit=MAX_BYTES))
    except InputError as error:
        return ConfigurationFile(None, (unreadable(source, str(error)),))
    if not documents:
        return ConfigurationFile(Settings())
    first, errors = documents[0], [finding(extra, (), TOO_MANY_DOCUMENTS) for extra in documents[1:2]]
    settings: Settings | None = None
    try:
        settings = valid_settings(first.value)
    except Rejected as rejected:
        errors += [finding(first, issue.path, str(issue)) for issue in rejected.issues[: MAX_FINDINGS + 1]]
    invalid = {error.field for error in errors}
    unserved = (warning for warning in missing_back_ends(first) if warning.field not in invalid)
    unknown = (finding(first, field.path, str(field)) for field in unknown_fields(first.value, Settings))
    ignored = (finding(first, path, f"{spelled(path)} has no effect: {reason}") for path, reason in without_effect(first.value))
    return ConfigurationFile(
        None if errors else settings,
        limited(errors, source),
        limited(chain(unserved, unknown), source),
        limited((warning for warning in ignored if warning.field not in invalid), source),
    )


def limited(findings: Iterable[Finding], source: str) -> tuple[Finding, ...]:
    """The findings in the order of their lines, at most `MAX_FINDINGS`; if there are more, another one says so."""
    first = list(islice(findings, MAX_FINDINGS + 1))
    more = (Finding(source, None, "", f"there are more than {MAX_FINDINGS} of these; the others are not listed"),)
    by_line = sorted(first[:MAX_FINDINGS], key=lambda finding: finding.line or 0)
    return (*by_line, *(more if len(first) > MAX_FINDINGS else ()))


def missing_back_ends(document: Document) -> Iterator[Finding]:
    """A warning for each configured scheduler without a back end in this engine."""
    scheduler = mapping(mapping(document.value).get("scheduler"))
    names: list[tuple[FieldPath, Any, str]] = [
        (("scheduler", "profiles", index, "name"), profile.get("name"), "workloads that name it are rejected")
        for index, profile in enumerate(mappings(scheduler.get("profiles")))
    ]
    default: FieldPath = ("scheduler", "defaultProfileName")
    names.append((default, scheduler.get("defaultProfileName"), "workloads that name no scheduler are rejected"))
    for path, name, consequence in names:
        if isinstance(name, str) and name not in SCHEDULERS:
            yield finding(document, path, f"{spelled(path)}: there is no back end for {clipped(name, 80)}: {consequence}")


def finding(document: Document, path: FieldPath, message: str) -> Finding:
    """A finding at the line of a field; if the file does not contain the field, at the line of its section."""
    return Finding(document.source, document.line(tuple(map(str, path))), spelled(path), message)


def unreadable(source: str, error: str) -> Finding:
    """The error of a file that cannot be parsed: `file:line: reason`, or `file: reason`."""
    text = error.removeprefix(source).removeprefix(":")
    line, _, reason = text.partition(": ")
    return Finding(source, int(line), "", printable(reason)) if line.isdecimal() else Finding(source, None, "", printable(text.strip()))


def place(source: str, line: int | None) -> str:
    """`file:line`, or the file alone."""
    return printable(source) if line is None else f"{printable(source)}:{line}"


Stamp = tuple[int, int, int, int] | None
"""Device, inode, modification time and size of a file, behind all symbolic links; None if there is no regular file."""


class ConfigurationWatch:
    """One file. A mounted ConfigMap is replaced by swapping a symbolic link, which changes the inode behind it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: Stamp = None
        """What the last look saw."""
        self._read: Stamp | str = "never"
        """The state of the file that was read last."""

    def changed(self) -> ConfigurationFile | None:
        """The file if it differs from what was read last, and is unchanged since the last look: it may be half written. Otherwise None.

        A file that cannot be read is one error. It counts as changed before it was read for the first time.
        """
        stamp = stamp_of(self._path)
        is_steady, self._seen = stamp == self._seen, stamp
        if not is_steady or stamp == self._read:
            return None
        self._read = stamp
        try:
            if stamp is None and self._path.exists():
                return _unusable(self._path, "not a regular file")
            return read_configuration_file(self._path)
        except UsageError as error:
            return ConfigurationFile(None, (unreadable(str(self._path), str(error)),))


def can_be_followed(path: Path) -> bool:
    """Whether the file can be read again: standard input and pipes cannot."""
    return path != STDIN and stamp_of(path) is not None


def stamp_of(path: Path) -> Stamp:
    """What distinguishes the file from what it was before."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


def _unusable(path: Path, reason: str) -> ConfigurationFile:
    return ConfigurationFile(None, (Finding(str(path), None, "", reason),))
