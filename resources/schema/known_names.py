"""Known names: what the message about a name that does not exist adds: the names that exist, the nearest one first."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from resources.schema.unknown_fields import nearest_name

MOST: Final = 10
"""The largest number of names that are listed; of the others the number is given."""
MOST_COMPARED: Final = 100
"""The largest number of known names with which a name is compared."""


def instead(written: Iterable[str], known: Iterable[str]) -> str:
    """The end of a message about names that do not exist, e.g. `; did you mean worker? There are worker, leader`."""
    names = list(dict.fromkeys(known))
    if not names:
        return "; there are none"
    near = _nearest(written, names)
    listed = list(dict.fromkeys([*near, *names]))
    more = f" and {len(listed) - MOST} more" if len(listed) > MOST else ""
    begin = f"{_question(near)} There" if near else "; there"
    return f"{begin} {'is' if len(listed) == 1 else 'are'} {', '.join(listed[:MOST])}{more}"


def question(written: Iterable[str], known: Iterable[str]) -> str:
    """The end of a message that lists the names itself, e.g. `; did you mean worker?`; empty if none is near."""
    near = _nearest(written, list(known))
    return _question(near) if near else ""


def _nearest(written: Iterable[str], names: list[str]) -> list[str]:
    """The name that is nearest to each of the written ones, as far as one is near."""
    near = (nearest_name(each, names[:MOST_COMPARED]) for each in islice(written, MOST))
    return list(dict.fromkeys(name for name in near if name))


def _question(near: list[str]) -> str:
    return f"; did you mean {' and '.join(near)}?"
