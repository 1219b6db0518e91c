"""ConfigurationWatch: the operator configuration file while it is in use: whether it has changed, and what it then contains."""

import os
import stat
from pathlib import Path

from enginectl.base.errors import UsageError
from enginectl.base.files import STDIN
from enginectl.wiring.configuration_file import ConfigurationFile, Finding, read_configuration_file, unreadable

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
