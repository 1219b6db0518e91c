"""Access: authentication by bearer token, and authorization."""

import datetime
from collections.abc import Iterable

from msgspec import Struct

from grove_sandbox.types.status import StatusError

ANY = "*"


class Identity(Struct, frozen=True):
    """The user that a token authenticates."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)


class Action(Struct, frozen=True):
    """What a request does: a verb on a resource, or on a path that is none (`path`)."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def target(self) -> str:
        """`pods`, or `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def denial(self, user: str) -> str:
        """The message with which an API server refuses the action."""
        if self.path:
            return f'forbidden: User "{user}" cannot {self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        qualified = f"{self.resource}.{self.group}" if self.group else self.resource
        subject = f'{qualified} "{self.name}"' if self.name else qualified
        return f'{subject} is forbidden: User "{user}" cannot {self.verb} resource "{self.target}" in API group "{self.group}" {where}'


class Denial(Struct, frozen=True):
    """A rule that denies actions; `*` matches anything. Without rules every user may do everything."""

    user: str = ANY
    verb: str = ANY
    resource: str = ANY
    """`pods`, `pods/status`, or `*` for all resources and their subresources."""
    group: str = ANY
    namespace: str = ANY

    def covers(self, user: str, action: Action) -> bool:
        """Whether this rule denies the action to the user. Paths that are no resource (discovery, health) are never denied."""
        pairs = (
            (self.user, user),
            (self.verb, action.verb),
            (self.resource, action.target),
            (self.group, action.group),
            (self.namespace, action.namespace),
        )
        return not action.path and all(pattern in (ANY, value) for pattern, value in pairs)


class Access:
    """The known tokens and the denials. Every user with a token is an administrator until a `Denial` says otherwise."""

    def __init__(self) -> None:
        self._identities: dict[str, tuple[Identity, datetime.datetime | None]] = {}
        self.denials: list[Denial] = []

    def grant(self, token: str, user: str, groups: Iterable[str] = ("system:masters",), *, until: datetime.datetime | None = None) -> None:
        """Accept `token` for `user`, until that time if one is given."""
        self._identities[token] = Identity(user, (*groups, "system:authenticated")), until

    def revoke(self, token: str) -> None:
        """Accept the token no longer."""
        self._identities.pop(token, None)

    def identify(self, authorization: str, now: datetime.datetime) -> Identity:
        """The user of an `Authorization` header. Raises 401 for a token that is unknown, expired or missing."""
        scheme, _, token = authorization.partition(" ")
        identity, until = self._identities.get(token.strip(), (None, None))
        if scheme.lower() != "bearer" or identity is None or (until is not None and now >= until):
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return identity

    def allows(self, user: str, action: Action) -> bool:
        """Whether no denial covers the action."""
        return not any(denial.covers(user, action) for denial in self.denials)

    def check(self, identity: Identity, action: Action) -> None:
        """Raises 403 for an action that is denied."""
        if not self.allows(identity.name, action):
            details = {"name": action.name, "group": action.group, "kind": action.resource}
            message = action.denial(identity.name)
            raise StatusError(403, "Forbidden", message, details={key: value for key, value in details.items() if value})
