"""Verb: what an operation does to its object."""

from enum import StrEnum


class Verb(StrEnum):
    """What an operation does to its object."""

    CREATE = "create"
    PATCH = "patch"
    SCALE = "scale"
    """Patch the number of replicas in its scale subresource."""
    REPLACE = "replace"
    """Delete it and create it anew."""
    RELEASE = "release"
    """Remove finalizers of ours."""
    DELETE = "delete"
    STATUS = "status"
    """Patch its status subresource."""
