"""Access: who is asking, by bearer token, and whether they may."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from providers.sandbox.types.status import StatusError

ANY = "*"


@dataclass(frozen=True, slots=True)
class Identity:
    """The user behind a token."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody is about to do: a verb on a resource, or on a bare path."""

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
        """The sentence in which an API server refuses it."""
        if self.path:
            return f'forbidden: User "{user}" cannot {self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        qualified = f"{self.resource}.{self.group}" if self.group else self.resource
        subject = f'{qualified} "{self.name}"' if self.name else qualified
        return f'{subject} is forbidden: User "{user}" cannot {self.verb} resource "{self.target}" in API group "{self.group}" {where}'


@dataclass(frozen=True, slots=True)
class Denial:
    """A rule that takes something away; a star stands for anything. Without such rules everybody may do everything."""

    user: str = ANY
    verb: str = ANY
    resource: str = ANY
    """`pods`, `pods/status`, or a star for all resources and their subresources."""
    group: str = ANY
    namespace: str = ANY

    def covers(self, user: str, act: Act) -> bool:
        """Whether this rule forbids that act to that user. Bare paths (discovery, health) are never forbidden."""
        pairs = (
            (self.user, user),
            (self.verb, act.verb),
            (self.resource, act.target),
            (self.group, act.group),
            (self.namespace, act.namespace),
        )
        return not act.path and all(rule in (ANY, asked) for rule, asked in pairs)


class Access:
    """The tokens that are known, and what is denied. Everybody with a token is an administrator until a `Denial` says otherwise."""

    def __init__(self) -> None:
        self._identities: dict[str, tuple[Identity, datetime.datetime | None]] = {}
        self.denials: list[Denial] = []

    def grant(self, token: str, user: str, groups: Iterable[str] = ("system:masters",), *, until: datetime.datetime | None = None) -> None:
        """Let whoever shows `token` be `user`, for ever or until that time."""
        self._identities[token] = Identity(user, (*groups, "system:authenticated")), until

    def revoke(self, token: str) -> None:
        """Know the token no longer, as when it has expired."""
        self._identities.pop(token, None)

    def identify(self, authorization: str, now: datetime.datetime) -> Identity:
        """The user behind an `Authorization` header. Raises the 401 of an unknown, expired or missing token."""
        scheme, _, token = authorization.partition(" ")
        identity, until = self._identities.get(token.strip(), (None, None))
        if scheme.lower() != "bearer" or identity is None or (until is not None and now >= until):
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return identity

    def allows(self, user: str, act: Act) -> bool:
        """Whether that user may do that."""
        return not any(denial.covers(user, act) for denial in self.denials)

    def check(self, identity: Identity, act: Act) -> None:
        """Raises the 403 of an act that is denied."""
        if not self.allows(identity.name, act):
            details = {"name": act.name, "group": act.group, "kind": act.resource}
            message = act.denial(identity.name)
            raise StatusError(403, "Forbidden", message, details={key: value for key, value in details.items() if value})
