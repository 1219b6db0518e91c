"""Channel rules: a pod that claims a second channel is rejected, because a node has one and the pod could never be scheduled (N23)."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from resources.base.fields import CLIQUES, mappings
from resources.model.domain import domain_requests_of
from resources.model.view import MAX_REPLICAS
from resources.ports.fabric import GROUP_INDEX, INDEX, Fabric, SpecifiedSet
from resources.schema.issues import ErrorType, Issue, Path

SECOND_CHANNEL: Final = (
    "is the claim template of a ComputeDomain of this PodCliqueSet, and pods of this clique claim a ComputeDomain already: "
    "a node has one channel, so they could never be scheduled"
)


class SecondClaim(NamedTuple):
    """A claim of a clique's pods for a channel, beside another one."""

    clique: str
    template: str
    path: Path


def issues(fabric: Fabric, new: SpecifiedSet, old: SpecifiedSet | None = None) -> Iterator[Issue]:
    """An issue for each claim in a set by which a pod would get a second channel, as far as the set alone shows it.

    That is a claim by a template with the name of one of the set's own domains. Claims that the stored set `old` has already are no issue:
    it can still be scaled and edited.
    """
    count = min(max(new.replicas, 1), MAX_REPLICAS)
    stored = {(claim.clique, claim.template) for claim in _second_claims(fabric, old, count)} if old is not None else set()
    for claim in _second_claims(fabric, new, count):
        if (claim.clique, claim.template) not in stored:
            yield Issue(claim.path, ErrorType.INVALID, SECOND_CHANNEL, claim.template)


def _second_claims(fabric: Fabric, specified: SpecifiedSet, replicas: int) -> Iterator[SecondClaim]:
    """The claims for channels, without the first one of each clique; the claim that the engine adds is the first."""
    domains = domain_requests_of(fabric, specified.name, specified)
    # Scaling groups are scaled without a review of their set: any index of theirs may come.
    limits = {INDEX: replicas, GROUP_INDEX: MAX_REPLICAS}
    for number, clique in enumerate(specified.cliques):
        path = (*CLIQUES, number, "spec", "podSpec", "resourceClaims")
        claims = [
            SecondClaim(clique.name, template, (*path, index, "resourceClaimTemplateName"))
            for index, claim in enumerate(mappings(clique.pod_spec.get("resourceClaims")))
            if isinstance(template := claim.get("resourceClaimTemplateName"), str)
            and any(_is_name_of(template, domain.name, limits) for domain in domains)
        ]
        yield from claims if any(clique.name in domain.cliques for domain in domains) else claims[1:]


def _is_name_of(name: str, pattern: str, limits: Mapping[str, int]) -> bool:
    """Whether a name is the pattern with an index below its limit for each of the tokens. The same token has the same index everywhere."""
    token = min((token for token in limits if token in pattern), key=pattern.index, default=None)
    if token is None:
        return name == pattern
    prefix, _, _ = pattern.partition(token)
    digits = re.match(r"[0-9]*", name.removeprefix(prefix), re.ASCII) if name.startswith(prefix) else None
    indices = (digits[0][: length + 1] for length in range(min(len(digits[0]), len(str(limits[token]))))) if digits else ()
    return any(
        int(index) < limits[token] and index == str(int(index)) and _is_name_of(name, pattern.replace(token, index), limits)
        for index in indices
    )
