"""Core: what every verb works on — the clock, what is served, and the store."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Literal
from uuid import UUID

from engine.runtime.clock import Clock
from providers.sandbox.api import faces
from providers.sandbox.api.request import Answer, Request, answer
from providers.sandbox.api.store import Collection, Store, Stored, key_of
from providers.sandbox.kinds import rule_table
from providers.sandbox.kinds.rules import Rules, Scene
from providers.sandbox.kinds.served import Catalogue, Served
from providers.sandbox.types import status

Body = Mapping[str, Any]
Operation = Literal["CREATE", "UPDATE", "DELETE"]
Admission = Callable[[Operation, Request, Body | None, Body | None], tuple[Body | None, tuple[str, ...]]]
"""A link of the admission chain: from the operation, the request, the new and the old object to the object to go on with (None: as it
is) and warnings. It refuses by raising `StatusError`."""
Validation = Callable[[Operation, Request, Body | None, Body | None], tuple[str, ...]]
"""A link that comes after the API's own validation and changes nothing: it answers with warnings, or refuses by raising `StatusError`."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"


class Core:
    """The parts that verbs share."""

    def __init__(
        self, clock: Clock, *, history: int, seed: int | None, admission: tuple[Admission, ...], validation: tuple[Validation, ...]
    ) -> None:
        self.clock = clock
        self.catalogue = Catalogue()
        self.store = Store(history)
        self.random = Random(seed)
        self.admission = admission
        self.validation = validation

    def now(self, after: float = 0) -> str:
        """The time as the API writes it, or that of `after` seconds later."""
        return (self.clock.now() + timedelta(seconds=after)).strftime(_TIME)

    def new_uid(self) -> str:
        """A uid that nothing else has."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def scene(self) -> Scene:
        """What rules may look at."""
        return Scene(self.now(), self.random, self.lookup)

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> Body | None:
        """Another object, or None."""
        stored = self.store.collection((group, plural)).objects.get(key_of(namespace, name))
        return None if stored is None else stored.body

    def collection(self, request: Request) -> Collection:
        """The collection that a request is about."""
        return self.store.collection(request.served.resource)

    def stored(self, request: Request) -> Stored:
        """The object that a request names. Raises 404."""
        found = self.collection(request).objects.get(key_of(request.namespace, request.name))
        if found is None:
            raise status.not_found(request.served.kind, request.name)
        return found

    def admit(self, operation: Operation, request: Request, new: Any, old: Body | None) -> tuple[Any, tuple[str, ...]]:
        """What the admission chain makes of a write. Raises its refusals."""
        warnings: tuple[str, ...] = ()
        for link in self.admission:
            made, told = link(operation, request, new, old)
            new, warnings = new if made is None else made, warnings + told
        return new, warnings

    def validate(self, operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[str, ...]:
        """What the links say of a write that is as it will be stored. Raises their refusals."""
        return tuple(warning for link in self.validation for warning in link(operation, request, new, old))


def rules_of(served: Served) -> Rules:
    """The rules of a kind."""
    return rule_table.CUSTOM if served.custom else rule_table.RULES.get((served.kind.group, served.kind.name), rule_table.PLAIN)


def answer_with(code: int, served: Served, stored: Stored, warnings: tuple[str, ...] = ()) -> Answer:
    """An answer that shows a stored object in the version that was asked for."""
    body, encoded = faces.shown(served, stored)
    return Answer(code, body, encoded, warnings)


def answer_draft(code: int, served: Served, body: Body, warnings: tuple[str, ...] = ()) -> Answer:
    """An answer that shows what a dry run would have stored."""
    return answer(code, faces.face_of(served, body), warnings)
