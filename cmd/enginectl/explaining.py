"""DiagnosingFabric: one object, with who wants it, how it stands and what is wrong, in lines and as a document."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from engine.ids import Kind, ResourceId
from engine.observed import Live, World
from engine.operation import Operation
from engine.paths import spell
from engine.report.fields import lines_of, sides
from engine.report.json import held_entry, identity, moment_text
from engine.report.line import Line
from engine.report.printable import clipped, printable
from engine.resource import Stance
from engine.runtime.client import Client
from engine.runtime.passes import Pass
from enginectl import domains_shown, output, wiring
from enginectl.condition import age
from enginectl.exits import Exit
from enginectl.options import Output
from enginectl.preview import look_at
from enginectl.running import Misuse
from enginectl.wiring import Wiring
from providers.asking import DiscoveryClient, ask, offer
from providers.looking import ReadOnlyProvider
from resources.base import kinds
from resources.domains import drain
from resources.domains.requests import planned_by
from resources.domains.status import DomainStatus, domain_statuses
from resources.ports.configuration import Configuration
from resources.ports.inspection import DiagnosingFabric, Diagnosis
from resources.ports.queries import Query, QueryResult, QueryResults
from resources.registry import BLUEPRINTS
from resources.reports.explanation import DesiredBy, Explanation, account
from resources.reports.provenance import Sources, provenance

VERSION = 1
SHOWN = 12
"""Fields and diagnoses that are shown; -v and -o json have them all."""
LONGEST = 400


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """All that there is to tell."""

    account: Explanation
    diagnoses: tuple[Diagnosis, ...] = ()
    domain_statuses: tuple[DomainStatus, ...] = ()
    """How a domain is doing, as seen from each set that has it."""
    sources: Sources = field(default_factory=dict)
    """Which of its fields come from which of its root's."""
    unseen: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why not all of it was seen."""


async def explained(wired: Wiring, word: str, name: str, form: Output) -> Exit:
    """Pass once, and explain."""
    async with wiring.cluster(wired) as (client, provider):
        kind = await kind_of(client, wired, word)
        id = kind.id(wired.options.namespace or wiring.home(wired), name)
        where = wiring.Where((id.namespace,)) if id.namespace else wiring.EVERYWHERE
        look = await look_at(wiring.engine_of(wired, ReadOnlyProvider(provider), where))
        offered = await offer(client)
        alone = Query(kind, id.namespace, id.name)
        other = (await ask(client, [alone], offered)).to(alone)
        plans = {plan.root: plan for plan in look.planned.plans}
        blueprints = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}
        found = account(look.world, plans, blueprints, id, wired.setup, look.now, next(iter(other.objects), None))
        diagnoses: list[Diagnosis] = []
        asked: dict[Query, QueryResult] = {alone: other} if other.fault else {}
        for domain in domains_of(wired.setup, found, look.world):
            fabric = next(fabric for fabric in wired.setup.fabrics if fabric.kind.name == domain.kind)
            if isinstance(fabric, DiagnosingFabric):
                answers = await ask(client, fabric.clues(domain), offered)
                asked |= answers.known
                diagnoses += relevant(found, domain, fabric.explain(domain, answers, look.now))
    unseen = {**look.world.incomplete, **dict(holes(QueryResults(asked)))}
    near = [seen for seen in look.world.roots if seen.root.id in plans]
    doing = [one for seen in near for one in domain_statuses(seen, plans[seen.root.id], wired.setup) if one.id == id]
    wants_all = form is Output.JSON or wired.options.verbose
    sources = sources_of(wired.setup, found, look) if wants_all else {}
    return told(Explained(found, tuple(diagnoses), tuple(doing), sources, unseen), wired, look.now, form)


async def kind_of(client: Client, wired: Wiring, word: str) -> Kind:
    """The kind that a word means: of those that we have to do with, then of all that the server serves. Raises `Misuse`."""
    scope = wiring.scope(wired.setup)
    ours = dict.fromkeys((*scope.roots, *scope.children, *scope.references))
    names = {kind: {kind.name, kind.plural, f"{kind.plural}.{kind.group}"} for kind in ours}
    if isinstance(client, DiscoveryClient):
        for one in (await client.discover()).served:
            told = {one.kind.name, one.kind.plural, f"{one.kind.plural}.{one.kind.group}", one.singular, *one.short_names}
            same = next((kind for kind in ours if (kind.group, kind.name) == (one.kind.group, one.kind.name)), one.kind)
            names.setdefault(same, set()).update(told)
    meant = word.lower()
    found = next((kind for kind, told in names.items() if meant in {name.lower() for name in told}), None)
    if found is None:
        raise Misuse(f"{word}: no such kind here")
    return found


def sources_of(setup: Configuration, found: Explanation, look: Pass) -> Sources:
    """Where its fields come from, by the first root that wants it."""
    roots = {seen.root.id: seen.root for seen in look.world.roots}
    for want in found.wanted:
        if found.live is not None and want.root in roots and want.root != found.id:
            blueprint = next(blueprint for blueprint in BLUEPRINTS if blueprint.kind.name == want.root.kind)
            return provenance(blueprint, roots[want.root], found.live, want.part, look.now, setup)
    return {}


def domains_of(setup: Configuration, found: Explanation, world: World) -> Iterator[ResourceId]:
    """The domain that an object is, or the domains that a pod is to be in: those that are there, and those that sets ask for."""
    live = found.live
    for fabric in setup.fabrics:
        if (found.id.group, found.id.kind) == (fabric.kind.group, fabric.kind.name):
            yield found.id
        elif live is not None and found.id.kind == kinds.POD.name:
            there = {one.id: one for one in world.references.of(fabric.kind.name)}
            sets = [(seen.root.id, seen.root.body) for seen in world.roots if seen.root.id.kind == kinds.PODCLIQUESET.name]
            known = {one.id for one in planned_by(sets, fabric)} | there.keys()
            near = (id for id in sorted(known) if id.namespace == found.id.namespace)
            yield from (id for id in near if drain.asks(live, fabric.template(there.get(id), id.name)))


def relevant(found: Explanation, domain: ResourceId, diagnoses: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
    """Of a domain, all that is said; of a pod, what is said of it or of the domain itself."""
    return (one for one in diagnoses if found.id == domain or one.about in (found.id, domain))


def holes(answers: QueryResults) -> Iterator[tuple[str, str]]:
    """What could not be seen."""
    return ((question.kind.name, answer.fault) for question, answer in answers.known.items() if answer.fault)


def told(found: Explained, wired: Wiring, now: datetime, form: Output) -> Exit:
    """Say it all, and answer with the exit code."""
    if form is Output.JSON:
        output.say_document(document(found))
    else:
        output.say_all(lines(found, now, verbose=wired.options.verbose))
    for kind, why in found.unseen.items():
        output.fault(f"not every {kind} could be seen: {clipped(why, 200)}")
    missing = not found.account.is_known and not found.diagnoses
    if missing and not found.unseen:
        output.fault(f"there is no {printable(str(found.account.id))}, and nothing wants it")
        return Exit.FAILED
    return Exit.INCOMPLETE if found.unseen else Exit.DONE


def lines(found: Explained, now: datetime, *, verbose: bool) -> Iterator[Line]:
    """What it is, who wants it, how it stands, and what is wrong."""
    one = found.account
    yield Line(printable(str(one.id)), "head")
    if one.is_known or found.diagnoses:
        yield Line(f"  {presence(one.live, now)}")
        yield from (Line(f"  {line}") for line in domain_requests(one))
        yield from (Line(f"  {line}") for line in dict.fromkeys(map(domains_shown.told, found.domain_statuses)))
        yield from standing(one, verbose)
    for path, of in found.sources.items():
        rest = f" and {len(of) - SHOWN} more" if len(of) > SHOWN else ""
        sources = ", ".join(printable(spell(source)) for source in of[:SHOWN])
        yield Line(f"  {printable(spell(path))} comes from {sources}{rest}", "faint")
    shown = found.diagnoses if verbose else found.diagnoses[:SHOWN]
    for each in shown:
        yield Line(f"  {clipped(each.observation, LONGEST)}", "bad" if each.bad else "faint")
        yield Line(f"    because {clipped(each.cause, LONGEST)}")
        if each.advice:
            yield Line(f"    do: {clipped(each.advice, LONGEST)}", "faint")
    if len(shown) < len(found.diagnoses):
        yield Line(f"  … {len(found.diagnoses) - len(shown)} more; -v shows all", "faint")


def presence(live: Live | None, now: datetime) -> str:
    """Whether it is there, and for how long."""
    if live is None:
        return "is not there"
    if live.deleting_since is None:
        return f"there for {age(now, live.created_at)}"
    holders = ", ".join(printable(str(one)) for one in live.body["metadata"].get("finalizers") or ()) or "nobody"
    return f"there for {age(now, live.created_at)}, being deleted for {age(now, live.deleting_since)}, held by {holders}"


def domain_requests(one: Explanation) -> Iterator[str]:
    """Who wants it and why, or that nobody does."""
    for want in one.wanted:
        verb = {Stance.WANT: "wanted by", Stance.HOLD: "held by", Stance.DROP: "to go, says"}[want.stance]
        yield f"{verb} {printable(str(want.root))}{of_part(want)}: {clipped(want.why, LONGEST)}"
    for problem in one.problems:
        yield f"what is wanted is not understood: {clipped(problem, LONGEST)}"
    if one.wanted or one.problems:
        return
    if one.roots:
        yield f"nothing wants it; it is of {', '.join(printable(str(root)) for root in one.roots)}"
    elif one.orphan:
        yield "nothing wants it; it bears our labels, and its workload is gone"
    else:
        yield "nothing wants it: it is of no workload"


def of_part(want: DesiredBy) -> str:
    """The part of the root, where it has a number."""
    return f" (replica {want.part})" if want.part.isdecimal() else ""


def standing(one: Explanation, verbose: bool) -> Iterator[Line]:
    """What is due, held and waited for."""
    for operation in one.operations:
        yield Line(f"  due: {operation.verb}, {clipped(operation.why, LONGEST)} ({operation.cause})", operation.verb)
        changes = lines_of(operation)
        for change in changes if verbose else changes[:SHOWN]:
            yield Line(f"    {printable(spell(change.path))}: {' → '.join(sides(change))}")
    for word, listed in (("held", one.deferred), ("waits", one.pending)):
        for held in listed:
            until = f" (until {moment_text(held.until)})" if held.until else ""
            yield Line(f"  {word}: {clipped(held.why, LONGEST)}{until}", "held")
    if one.live is not None and one.wanted and not (one.operations or one.deferred or one.pending):
        yield Line("  as it is wanted", "good")


def document(found: Explained) -> dict[str, Any]:
    """The same as a document."""
    one, live = found.account, found.account.live
    return {
        "version": VERSION,
        "kind": "Why",
        "object": identity(one.id),
        "exists": live is not None,
        "createdAt": moment_text(live.created_at) if live else None,
        "deletingSince": moment_text(live.deleting_since) if live else None,
        "finalizers": [str(name) for name in live.body["metadata"].get("finalizers") or ()] if live else [],
        "wantedBy": [{"root": identity(want.root), "part": want.part, "stance": str(want.stance), "why": want.why} for want in one.wanted],
        "roots": [identity(root) for root in one.roots],
        "operations": [operation_entry(operation) for operation in one.operations],
        "held": [held_entry(held) for held in one.deferred],
        "waiting": [held_entry(held) for held in one.pending],
        "problems": list(one.problems),
        "fields": [{"path": spell(path), "from": list(map(spell, of))} for path, of in found.sources.items()],
        "domains": [domains_shown.entry(each) for each in found.domain_statuses],
        "diagnoses": [diagnosis_entry(each) for each in found.diagnoses],
        "unseen": dict(found.unseen),
    }


def operation_entry(operation: Operation) -> dict[str, Any]:
    """Something that is due."""
    changes = [{"path": spell(change.path), "old": change.old, "new": change.new} for change in lines_of(operation)]
    return {"verb": str(operation.verb), "why": operation.why, "cause": str(operation.cause), "changes": changes}


def diagnosis_entry(one: Diagnosis) -> dict[str, Any]:
    """What is seen, where it comes from, and what to do."""
    return {"about": identity(one.about), "observation": one.observation, "cause": one.cause, "advice": one.advice, "bad": one.bad}
