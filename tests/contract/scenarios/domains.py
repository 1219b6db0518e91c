"""ComputeDomains: what a server makes of them under the definitions that NVIDIA's driver brings."""

from typing import Any

from grove_sandbox.installation.installation import definitions
from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.applying import applied

GROUP = "/apis/resource.nvidia.com/v1beta1"
DOMAINS = f"{GROUP}/namespaces/{{ns}}/computedomains"
CLIQUES = f"{GROUP}/namespaces/{{ns}}/computedomaincliques"


def _domain(name: str = "a", /, **spec: Any) -> dict[str, Any]:
    """A domain whose pods claim by the template `t`."""
    return {**_bare(name), "spec": {"channel": {"resourceClaimTemplate": {"name": "t"}}, **spec}}


def _bare(name: str) -> dict[str, Any]:
    """A domain that says nothing."""
    return {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": name}}


def _clique(*daemons: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainClique",
        "metadata": {"name": "c"},
        "daemons": list(daemons),
    }


_DAEMON = {"nodeName": "n", "ipAddress": "192.0.2.1", "cliqueID": "q", "index": 0}
_NODE = {"name": "n", "ipAddress": "192.0.2.1", "cliqueID": "q", "index": 0}
A, C = f"{DOMAINS}/a", f"{CLIQUES}/c"

DEFINED = tuple(Step("", "ENSURE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition) for definition in definitions())
DRIVERS = Scenario(
    "compute-domains",
    (
        *DEFINED,
        Step("", "AWAIT", GROUP),
        Step("", "AWAIT", CLIQUES),
        Step("defaults", "POST", DOMAINS, _domain()),
        Step(
            "all of it said",
            "POST",
            DOMAINS,
            _domain("b", numNodes=4, channel={"resourceClaimTemplate": {"name": "t"}, "allocationMode": "All"}),
        ),
        Step("a status at birth", "POST", DOMAINS, {**_domain("s"), "status": {"status": "Ready"}}),
        Step("no channel", "POST", DOMAINS, {**_bare("x"), "spec": {"numNodes": 1}}),
        Step("no template", "POST", DOMAINS, _domain("x", channel={})),
        Step("a template without a name", "POST", DOMAINS, _domain("x", channel={"resourceClaimTemplate": {}})),
        Step("another mode", "POST", DOMAINS, _domain("x", channel={"resourceClaimTemplate": {"name": "t"}, "allocationMode": "Some"})),
        Step("less than no nodes", "POST", DOMAINS, _domain("x", numNodes=-1)),
        Step("nodes in words", "POST", DOMAINS, _domain("x", numNodes="two")),
        Step("a spec that is none", "POST", DOMAINS, {**_bare("x"), "spec": "x"}),
        Step("a spec of nothing", "POST", DOMAINS, {**_bare("x"), "spec": {}}),
        Step("a field that there is not", "POST", f"{DOMAINS}?fieldValidation=Strict", _domain("x", nodes=1)),
        Step("another number of nodes", "PATCH", A, {"spec": {"numNodes": 2}}, "merge"),
        Step("another template", "PATCH", A, {"spec": {"channel": {"resourceClaimTemplate": {"name": "u"}}}}, "merge"),
        Step("a spec that is wrong as well", "PATCH", A, {"spec": {"numNodes": -2}}, "merge"),
        Step("no spec any more", "PATCH", A, {"spec": None}, "merge"),
        Step("and another again", "PATCH", A, {"spec": {"channel": {"resourceClaimTemplate": {"name": "u"}}}}, "merge"),
        Step("the spec that it has", "PATCH", f"{DOMAINS}/b", {"spec": {"numNodes": 4}}, "merge"),
        Step(
            "labels and a finalizer",
            "PATCH",
            f"{DOMAINS}/b",
            {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/f"]}},
            "merge",
        ),
        Step("a status through the object", "PATCH", f"{DOMAINS}/b", {"status": {"status": "Ready"}}, "merge"),
        Step("a status", "PATCH", f"{DOMAINS}/b/status", {"status": {"nodes": [_NODE]}}, "merge"),
        Step("a status that there is not", "PATCH", f"{DOMAINS}/b/status", {"status": {"status": "Fine"}}, "merge"),
        Step("a node without its clique", "PATCH", f"{DOMAINS}/b/status", {"status": {"nodes": [{"name": "n", "ipAddress": ""}]}}, "merge"),
        Step("a node twice", "PATCH", f"{DOMAINS}/b/status", {"status": {"nodes": [_NODE, _NODE]}}, "merge"),
        Step("no node at all", "PATCH", f"{DOMAINS}/b/status", {"status": {"nodes": [None]}}, "merge"),
        Step(
            "a spec through the status", "PATCH", f"{DOMAINS}/b/status", {"spec": {"numNodes": 9}, "status": {"status": "Ready"}}, "merge"
        ),
        Step("without a spec", "POST", DOMAINS, _bare("e")),
        Step("labels without a spec", "PATCH", f"{DOMAINS}/e", {"metadata": {"labels": {"a": "b"}}}, "merge"),
        Step("a spec afterwards", "PATCH", f"{DOMAINS}/e", {"spec": {"channel": {"resourceClaimTemplate": {"name": "t"}}}}, "merge"),
        Step("and another after that", "PATCH", f"{DOMAINS}/e", {"spec": {"numNodes": 3}}, "merge"),
        applied("applied", f"{DOMAINS}/p", _domain("p")),
        applied("applied otherwise", f"{DOMAINS}/p", _domain("p", numNodes=1)),
        Step("released", "PATCH", f"{DOMAINS}/b", {"metadata": {"finalizers": None}}, "merge"),
        Step("gone", "DELETE", f"{DOMAINS}/b"),
        Step("a clique", "POST", CLIQUES, _clique(_DAEMON)),
        Step("no daemon at all", "POST", CLIQUES, {**_clique(None), "metadata": {"name": "d"}}),
        Step("no daemon any more", "PATCH", C, {"daemons": [None]}, "merge"),
        Step("a daemon and none", "PATCH", C, {"daemons": [_DAEMON, None]}, "merge"),
        Step("a daemon that is a text", "PATCH", C, {"daemons": ["n"]}, "merge"),
        Step("a daemon without a name", "PATCH", C, {"daemons": [{"index": 1}]}, "merge"),
        Step("a daemon of another type", "PATCH", C, {"daemons": [{**_DAEMON, "index": "one"}]}, "merge"),
        Step("a daemon twice", "PATCH", C, {"daemons": [_DAEMON, _DAEMON]}, "merge"),
        Step("a daemon that changes", "PATCH", C, {"daemons": [{**_DAEMON, "status": "Ready"}]}, "merge"),
        Step("there is no status", "PATCH", f"{C}/status", {"daemons": []}, "merge"),
    ),
)

SCENARIOS = (DRIVERS,)
