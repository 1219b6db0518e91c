"""Listing: order, selectors, pages, revisions."""

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.bodies import MAPS, PODS, config, pod


def _listed(title: str, selector: str) -> Step:
    return Step(title, "GET", f"{MAPS}?{selector}")


SELECTORS = Scenario(
    "selectors",
    (
        Step("one", "POST", MAPS, config("one", labels={"x": "1", "n": "5"})),
        Step("two", "POST", MAPS, config("two", labels={"x": "2"})),
        Step("three", "POST", MAPS, config("three", labels={"y": "1", "x": "3"})),
        _listed("equal", "labelSelector=x%3D1"),
        _listed("twice equal", "labelSelector=x%3D%3D2"),
        _listed("unequal", "labelSelector=x%21%3D1,x"),
        _listed("one of", "labelSelector=x%20in%20(1,3)"),
        _listed("none of", "labelSelector=x%20notin%20(1,3),x"),
        _listed("there", "labelSelector=y"),
        _listed("not there", "labelSelector=%21y,x"),
        _listed("greater", "labelSelector=n%3E4"),
        _listed("nobody", "labelSelector=x%3D9"),
        _listed("by name", "fieldSelector=metadata.name%3Dtwo"),
        _listed("by what it is not", "fieldSelector=metadata.name%21%3Dtwo&labelSelector=x"),
        _listed("by a field that cannot be chosen", "fieldSelector=data.k%3Dv"),
        _listed("no field selector at all", "fieldSelector=nonsense"),
        _listed("no label selector at all", "labelSelector=x%20in"),
        _listed("a bad key", "labelSelector=a%20b%3Dc"),
        _listed("a bad value", "labelSelector=a%3D!!"),
        _listed("a bad operator", "labelSelector=a%20near%20(b)"),
        Step("a pod", "POST", PODS, pod("p")),
        Step("another", "POST", PODS, pod("q", nodeName="n")),
        Step("pods by node", "GET", f"{PODS}?fieldSelector=spec.nodeName%3Dn"),
        Step("pods of no node", "GET", f"{PODS}?fieldSelector=spec.nodeName%3D"),
        Step("pods by phase", "GET", f"{PODS}?fieldSelector=status.phase%3DRunning"),
        Step("pods by nonsense", "GET", f"{PODS}?fieldSelector=spec.nonsense%3Dx"),
    ),
)

_X = "labelSelector=x"
PAGES = Scenario(
    "pages",
    (
        *(Step(f"number {n}", "POST", PODS, {**pod(f"p{n}"), "metadata": {"name": f"p{n}", "labels": {"x": "y"}}}) for n in range(5)),
        Step("two of five", "GET", f"{PODS}?limit=2", keep={"token": "metadata.continue"}),
        Step("one more meanwhile", "POST", PODS, pod("p00")),
        Step("two more", "GET", f"{PODS}?limit=2&continue={{token}}", keep={"token": "metadata.continue"}),
        Step("the last", "GET", f"{PODS}?limit=2&continue={{token}}"),
        Step("with a selector", "GET", f"{PODS}?limit=2&{_X}", keep={"token": "metadata.continue"}),
        Step("and on", "GET", f"{PODS}?limit=9&{_X}&continue={{token}}"),
        Step("a bad token", "GET", f"{PODS}?limit=2&continue=nonsense"),
        Step("no page at all", "GET", f"{PODS}?limit=500"),
        Step("a revision that is no number", "GET", f"{PODS}?resourceVersion=x"),
        Step("any revision", "GET", f"{PODS}?resourceVersion=0&{_X}"),
        Step("a match without a revision", "GET", f"{PODS}?resourceVersionMatch=Exact"),
        Step("a continued revision", "GET", f"{PODS}?resourceVersion=5&continue={{token}}"),
        Step("an unknown match", "GET", f"{PODS}?resourceVersionMatch=Nearly&resourceVersion=1"),
        Step("a revision yet to come", "GET", f"{PODS}?resourceVersion=999999999"),
        Step("an empty list", "GET", "/apis/apps/v1/namespaces/{ns}/deployments"),
    ),
)

SCENARIOS = (SELECTORS, PAGES)
