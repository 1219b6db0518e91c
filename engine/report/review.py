"""Review: what documents for reviewers are bound by: the places of manifests, and the limits of those who show them."""

import re
from typing import Final

from msgspec import Struct

COMMENT: Final = 65_000
"""Bytes of a comment: GitHub's limit is 65,536 characters."""
SUMMARY: Final = 1_000_000
"""Bytes of a job's summary: GitHub's limit is 1 MiB."""
SMALLEST: Final = 16_000
"""Bytes in which the heading, the totals and 20 blockers always fit."""
LINK: Final = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'*+,;=%-]{1,2000}")
"""Addresses that a report may link to."""
TITLE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._/:]|-(?!-)){0,99}")
"""A title by which a comment is found again: what HTML comments may contain."""


class FileLine(Struct, frozen=True):
    """A line of a file."""

    file: str
    """Relative to the root of the repository, if it is in one."""
    line: int = 1
