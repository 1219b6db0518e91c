"""Request and decision: the input and the output of admission, independent of the transport."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.report.printable import clipped
from engine.resource import Body
from resources.schema import pod_spec_rules
from resources.schema.issues import MAX_TEXT, Issue, Located, Path, spelled
from resources.schema.pod_spec_rules import warning

MAX_POD_WARNINGS: Final = 100
"""The largest number of warnings about pods in one answer."""
MAX_NOTES: Final = 3
"""The largest number of notes about the pods of one set; further ones are only counted."""


class Act(StrEnum):
    """The operation of an admission request."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


class Request(Struct, frozen=True):
    """A request to create, change or delete one object."""

    act: Act
    id: ResourceId
    body: Body | None
    """The object after the request; None for a deletion."""
    old: Body | None = None
    """The stored object; None for a creation."""
    user: str = ""
    """The name of the authenticated user; empty if it is not known."""
    subresource: str = ""
    """The subresource that is changed, e.g. `status`; empty for the object itself."""
    resource: str = ""
    """The plural of the resource, with a subresource that of its owner, e.g. `podcliques`; empty if it is not known."""
    user_info: Body = field(default_factory=dict)
    """What is known of the user besides the name: `uid`, `groups`, `extra`, of any shape."""


class Decision(Struct, frozen=True):
    """The answer to a request."""

    issues: tuple[Issue, ...] = ()
    """Everything that is wrong with the object; any issue denies the request."""
    warnings: tuple[str, ...] = ()
    """Messages for the user that do not deny the request."""
    pods: tuple[Issue, ...] = ()
    """What an API server would refuse in the pods, and unknown fields of pod specs: that denies no object, but may keep a change from being
    applied."""
    gangs: str = ""
    """What a review tells the user whose new set has gangs that its scheduler does not schedule. Previews say it once, of all sets."""
    denial: str = ""
    """Why the user must not change the object, whatever it contains; empty if there is no such reason."""
    body: Body | None = None
    """The object to store: `request.body` itself if nothing is changed."""

    @property
    def allowed(self) -> bool:
        """Whether the request is admitted."""
        return not self.issues and not self.denial

    @property
    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, and those about the pods: at most `MAX_POD_WARNINGS` of them."""
        more = len(self.pods) - MAX_POD_WARNINGS
        about_pods = tuple(clipped(pod_spec_rules.warning(finding), MAX_TEXT) for finding in self.pods[:MAX_POD_WARNINGS])
        return (*self.warnings, *about_pods, *([f"and {more} more warnings about pods"] if more > 0 else []))


def unknown_field(path: Path) -> str:
    """The warning about an unknown field, in the words of an API server."""
    return Located(f'unknown field "{spelled(path)}"', path)


def pod_notes(findings: Iterable[Issue]) -> tuple[str, ...]:
    """A note for each of these findings that would keep the pods of a set from being created, at most `MAX_NOTES`."""
    refused = [finding for finding in findings if finding.pods_only]
    more = [f"and {len(refused) - MAX_NOTES} more reasons to refuse the pods"] if len(refused) > MAX_NOTES else []
    return (*(clipped(warning(finding), MAX_TEXT) for finding in refused[:MAX_NOTES]), *more)
