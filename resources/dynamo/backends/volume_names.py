"""Volume names: valid names for the volumes of objects whose names may be longer or have dots."""

import re

from engine.canonical import token
from resources.dynamo.model.names import DIGEST

LONGEST = 63
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")


def volume_name(name: str) -> str:
    """The name of the object, if a volume may have it; otherwise one made of its beginning and its digest."""
    if len(name) <= LONGEST and _LABEL.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "volume"
    beginning = plain[: LONGEST - DIGEST - 1].rstrip("-")
    return f"{beginning}-{token(name, DIGEST)}"
