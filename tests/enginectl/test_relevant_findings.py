"""Of the findings about a domain, `why` shows those about the object that was asked for."""

from msgspec.structs import replace

from engine.ids import ResourceId
from enginectl.actions.explain import relevant
from resources.ports.checks import Diagnosis
from resources.reports.explanation import Explanation

DOMAIN = ResourceId("resource.nvidia.com", "ComputeDomain", "default", "d")
FIRST, SECOND, THIRD = (ResourceId("", "Pod", "default", name) for name in "abc")
SHARED = Diagnosis(FIRST, "2 pods (a, b): Pending", "no node is free", pods=(FIRST, SECOND))
OF_DOMAIN = Diagnosis(DOMAIN, "NotReady", "a node has not joined")
NAMING_IT = replace(OF_DOMAIN, observation="ComputeDomain d: NotReady")
ABOUT_A = Explanation(FIRST, None, (), (), (), (), (), orphan=False, problems=())


def shown(id: ResourceId) -> list[Diagnosis]:
    return list(relevant(replace(ABOUT_A, id=id), DOMAIN, [SHARED, OF_DOMAIN]))


def test_a_finding_about_several_pods_is_shown_for_each_of_them() -> None:
    assert shown(FIRST) == shown(SECOND) == [SHARED, NAMING_IT]
    assert shown(DOMAIN) == [SHARED, OF_DOMAIN]


def test_of_another_pod_only_what_is_said_of_the_domain_is_shown_and_names_the_domain() -> None:
    assert shown(THIRD) == [NAMING_IT]
