"""Domains: what must hold of ComputeDomains, their pods and their nodes at every moment (I1, I2, I3, I7 of docs/behaviour)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from engine.errors import NotFound
from engine.ids import Kind
from engine.runtime.provider import Client
from grove_sandbox.actors import prepare_calls
from grove_sandbox.actors.claim_fields import claims_of
from grove_sandbox.driver.plugins import ClaimConfig, config_of
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DOMAIN_LABEL, TARGET_LABEL, WORKLOAD
from resources.base.kinds import NODE, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE

Body = Mapping[str, Any]


async def assert_invariants(client: Client, *, but: frozenset[str] = frozenset()) -> None:
    """Nothing is wrong with any domain; `but` names the invariants that a story breaks on purpose."""
    assert [wrong for wrong in await violations(client) if wrong.partition(":")[0] not in but] == []


async def violations(client: Client) -> list[str]:
    """What is wrong, each with the invariant that it breaks."""
    pods, claims = await _all(client, POD), await _all(client, RESOURCE_CLAIM)
    domains, nodes = await _all(client, COMPUTE_DOMAIN), await _all(client, NODE)
    templates = [one for one in await _all(client, RESOURCE_CLAIM_TEMPLATE) if _labels(one).get(TARGET_LABEL) == WORKLOAD]
    return [
        *_running_without_domain(pods, claims, domains),
        *_wrong_templates(domains, templates),
        *_labelled_without_use(nodes, claims),
        *_prepared_twice(claims),
    ]


def _running_without_domain(pods: list[Body], claims: list[Body], domains: list[Body]) -> Iterator[str]:
    """I1: no pod runs whose domain is not there, or is being taken down."""
    live = {one["metadata"]["uid"] for one in domains if "deletionTimestamp" not in one["metadata"]}
    by_key = {(one["metadata"]["namespace"], one["metadata"]["name"]): one for one in claims}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") == "Running":
            for key in claims_of(pod):
                config = _channel(by_key[key]) if key in by_key else None
                if config is not None and config.domain not in live:
                    yield f"I1: pod {pod['metadata']['name']} runs in domain {config.domain}, which is not there or on its way out"


def _wrong_templates(domains: list[Body], templates: list[Body]) -> Iterator[str]:
    """I2: a domain has one template for its workload at most, under the name that it says."""
    for domain in domains:
        name = domain["metadata"]["name"]
        found = [one["metadata"]["name"] for one in templates if _labels(one).get(DOMAIN_LABEL) == domain["metadata"]["uid"]]
        wanted = ((domain.get("spec") or {}).get("channel") or {}).get("resourceClaimTemplate", {}).get("name")
        if len(found) > 1 or any(one != wanted for one in found):
            yield f"I2: domain {name} wants the template {wanted} and has {found}"


def _labelled_without_use(nodes: list[Body], claims: list[Body]) -> Iterator[str]:
    """I3: a node is in a domain because something on it has, or has just had, a claim of that domain."""
    used = {(prepare_calls.node_of(claim), config.domain) for claim in claims if (config := _channel(claim)) is not None}
    for node in nodes:
        name, label = node["metadata"]["name"], _labels(node).get(DOMAIN_LABEL)
        if label is not None and (name, label) not in used:
            yield f"I3: node {name} is in domain {label}, and nothing on it is"


def _prepared_twice(claims: list[Body]) -> Iterator[str]:
    """I7: one channel of a node is prepared at most."""
    channels = [claim for claim in claims if _channel(claim) is not None]
    done = [claim for claim in channels if (call := prepare_calls.call_of(claim)) is not None and call.is_done]
    for node, count in Counter(map(prepare_calls.node_of, done)).items():
        if count > 1:
            yield f"I7: {count} claims are prepared on node {node}"


def _channel(claim: Body) -> ClaimConfig | None:
    """What a claim for a channel says; None for any other claim, or one that has no devices."""
    try:
        config = config_of(claim)
    except ValueError:
        return None
    return config if config.is_channel and prepare_calls.results_of(claim) else None


def _labels(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("labels") or {}


async def _all(client: Client, kind: Kind) -> list[Body]:
    try:
        return list((await client.list(kind)).items)
    except NotFound:
        return []
