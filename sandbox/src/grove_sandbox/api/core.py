"""Core: the parts that all verbs share: the clock, the served kinds, the store and the admission chain."""

from collections.abc import Callable
from copy import copy
from datetime import timedelta
from random import Random
from typing import Any, Literal
from uuid import UUID

from grove_sandbox.api import conversion
from grove_sandbox.api.request import Answer, Request, answer
from grove_sandbox.api.store import Collection, Store, Stored, key_of
from grove_sandbox.kinds import rule_table
from grove_sandbox.kinds.rules import Environment, Rules
from grove_sandbox.kinds.served import Catalogue, Served
from grove_sandbox.product import Body, Clock
from grove_sandbox.types import status

Operation = Literal["CREATE", "UPDATE", "DELETE"]
Admission = Callable[[Operation, Request, Body | None, Body | None], tuple[Body | None, tuple[str, ...]]]
"""A mutating plugin: from the operation, the request, the new and the old object to the changed object (None: unchanged) and warnings.
It refuses by raising `StatusError`."""
Validation = Callable[[Operation, Request, Body | None, Body | None], tuple[str, ...]]
"""A validating plugin, which runs after the validation of the kind: it returns warnings, or refuses by raising `StatusError`."""

_TIME = "%Y-%m-%dT%H:%M:%SZ"


class Core:
    """The state of the API."""

    def __init__(
        self,
        clock: Clock,
        *,
        history: int,
        seed: int | None,
        gangs: bool,
        admission: tuple[Admission, ...],
        validation: tuple[Validation, ...],
    ) -> None:
        self.clock = clock
        self.catalogue = Catalogue(gangs=gangs)
        self.store = Store(history)
        self.random = Random(seed)
        self.admission = admission
        self.validation = validation

    def fork(self, clock: Clock) -> "Core":
        """A second state that equals this one, on another clock, and changes independently of it. It has the same plugins."""
        forked = copy(self)
        forked.clock, forked.catalogue, forked.store = clock, self.catalogue.copy(), self.store.copy()
        forked.random = Random()
        forked.random.setstate(self.random.getstate())
        return forked

    def now(self, after: float = 0) -> str:
        """The time as the API writes it, `after` seconds from now."""
        return (self.clock.now() + timedelta(seconds=after)).strftime(_TIME)

    def new_uid(self) -> str:
        """A new uid."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def environment(self) -> Environment:
        """What the rules of a kind need besides the object."""
        return Environment(self.now(), self.random, self.lookup, self.catalogue.gangs)

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> Body | None:
        """Another object, or None."""
        stored = self.store.collection((group, plural)).objects.get(key_of(namespace, name))
        return None if stored is None else stored.body

    def collection(self, request: Request) -> Collection:
        """The collection of the request's kind."""
        return self.store.collection(request.served.resource)

    def stored(self, request: Request) -> Stored:
        """The object that the request names. Raises 404."""
        stored = self.collection(request).objects.get(key_of(request.namespace, request.name))
        if stored is None:
            raise status.not_found(request.served.kind, request.name)
        return stored

    def admit(self, operation: Operation, request: Request, new: Any, old: Body | None) -> tuple[Any, tuple[str, ...]]:
        """The new object after the mutating plugins, and their warnings. Raises their refusals."""
        warnings: tuple[str, ...] = ()
        for plugin in self.admission:
            changed, added = plugin(operation, request, new, old)
            new, warnings = new if changed is None else changed, warnings + added
        return new, warnings

    def validate(self, operation: Operation, request: Request, new: Body | None, old: Body | None) -> tuple[str, ...]:
        """The warnings of the validating plugins. Raises their refusals."""
        return tuple(warning for plugin in self.validation for warning in plugin(operation, request, new, old))


def rules_of(served: Served) -> Rules:
    """The rules of a kind."""
    return rule_table.CUSTOM if served.custom else rule_table.RULES.get((served.kind.group, served.kind.name), rule_table.PLAIN)


def stored_answer(code: int, served: Served, stored: Stored, warnings: tuple[str, ...] = ()) -> Answer:
    """The answer with a stored object, in the version of the request."""
    body, encoded = conversion.converted(served, stored)
    return Answer(code, body, encoded, warnings)


def draft_answer(code: int, served: Served, body: Body, warnings: tuple[str, ...] = ()) -> Answer:
    """The answer with an object that has not been stored, or is no longer."""
    return answer(code, conversion.convert(served, body), warnings)
