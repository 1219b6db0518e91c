"""Verb: what an operation does to its object."""

from enum import StrEnum


class Verb(StrEnum):
    """What an operation does to its object."""

    CREATE = "create"
    PATCH = "patch"
    REPLACE = "replace"
    RELEASE = "release"
    DELETE = "delete"
    STATUS = "status"
