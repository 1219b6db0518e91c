"""The authorities that API servers trust when they ask for a conversion: `caBundle` in the definition of graphs."""

from typing import Any

from providers.certificates.bundles import Bundles, ServedService, bundles_of, change_of, targets_of
from resources.install.webhooks import CONVERT, GRAPH_DEFINITION, convert_service
from resources.schema.crds import Conversion, crds

SERVICE = ServedService("grove-system", "grove-engine")
(TARGET,) = targets_of((), (GRAPH_DEFINITION,))


def definition(namespace: str = "grove-system") -> dict[str, Any]:
    """The definition of graphs in both versions, converted by the engine in that namespace."""
    definitions = crds(Conversion(convert_service(namespace, 9443)))
    body = next(each for each in definitions if each["metadata"]["name"] == GRAPH_DEFINITION)
    return {**body, "metadata": {**body["metadata"], "resourceVersion": "7"}}


def test_the_authority_is_written_into_the_definition_and_nothing_else() -> None:
    bundles = bundles_of(definition(), TARGET, SERVICE)

    assert isinstance(bundles, Bundles)
    assert (bundles.texts, bundles.revision) == ((("conversion", ""),), "7")
    assert change_of(Bundles(TARGET, "7", (("conversion", "old"),)), ()) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": ""}}}},
    }


def test_a_definition_that_another_service_converts_is_left_alone() -> None:
    why = bundles_of(definition("dynamo"), TARGET, SERVICE)

    assert why == "its webhook conversion calls the Service dynamo/grove-engine, not grove-system/grove-engine"


def test_a_definition_with_one_version_has_nothing_to_trust() -> None:
    plain = next(each for each in crds() if each["metadata"]["name"] == GRAPH_DEFINITION)

    bundles = bundles_of(plain, TARGET, SERVICE)

    assert isinstance(bundles, Bundles) and bundles.texts == ()


def test_the_definition_names_both_versions_and_stores_one() -> None:
    spec = definition()["spec"]

    versions = [(each["name"], each["served"], each["storage"]) for each in spec["versions"]]
    assert versions == [("v1alpha1", True, True), ("v1beta1", True, False)]
    assert spec["conversion"]["webhook"]["clientConfig"]["service"]["path"] == CONVERT
    stored = next(each for each in crds(Conversion({}, "v1beta1")) if each["metadata"]["name"] == GRAPH_DEFINITION)["spec"]["versions"]
    assert [each["storage"] for each in stored] == [False, True]
