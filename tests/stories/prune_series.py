"""The edits of ApplySets and of claim templates that are compared on a real API server."""

from typing import Any

from engine.resource import Body
from engine.runtime.sync_report import Ending
from resources.base import kinds
from tests.builders import claim_template, clique, podcliqueset, share
from tests.stories.edits import Edit, EditSeries, all_deleted, applied, claims_are_released, created, deleted, held, scaled, together
from tests.stories.pods import running

SET = kinds.PODCLIQUESET
EVERYBODY = {"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}
PARENTS = ["get", "create", "patch", "delete"]
"""What the account of a command does with the parents of ApplySets."""
OF_PARENTS = together(
    created(kinds.ROLE, {"metadata": {"name": "parents"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": PARENTS}]}),
    created(
        kinds.ROLE_BINDING,
        {
            "metadata": {"name": "parents"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "parents"},
            "subjects": [EVERYBODY],
        },
    ),
)


def member(name: str, version: int = 1) -> Body:
    """A set with one clique."""
    return podcliqueset(name, clique("a", 2, minAvailable=1, pod_spec=running(version)))


PRUNED = EditSeries(
    "applysets",
    [],
    [
        Edit("a parent and two members", manifests=[member("one"), member("two")], applyset="team"),
        Edit("another image of one", manifests=[member("one", 2), member("two")], applyset="team"),
        Edit("one more, one less, and another image", manifests=[member("one", 3), member("three")], applyset="team"),
        Edit("nothing has changed", manifests=[member("one", 3), member("three")], applyset="team"),
        Edit("a second parent, which has another set", manifests=[member("four")], applyset="other"),
        Edit("the parent is deleted by a user", deleted(kinds.CONFIG_MAP, "team"), [member("one", 3), member("three")], applyset="team"),
        Edit("a member is deleted by a user", deleted(SET, "three"), [member("one", 3), member("three")], applyset="team"),
        Edit("no member any more", applyset="team"),
    ],
    before=OF_PARENTS,
)


def template(name: str = "device") -> dict[str, Any]:
    """A ResourceClaimTemplate of a user."""
    kind = {"apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version, "kind": kinds.RESOURCE_CLAIM_TEMPLATE.name}
    return {**kind, "metadata": {"name": name}, "spec": claim_template(name)["templateSpec"]}


def claiming(name: str, scope: str, pods: int = 2, version: int = 1) -> Body:
    """A set whose pods share claims from a template of a user."""
    pod_spec = running(version)
    return podcliqueset(name, clique("a", pods, minAvailable=1, pod_spec=pod_spec, resourceSharing=[share("device", scope)]))


SHARED_TEMPLATES = EditSeries(
    "shared-templates",
    [claiming("each", "PerReplica"), claiming("all", "AllReplicas")],
    [
        Edit("the template of two sets is deleted", deleted(kinds.RESOURCE_CLAIM_TEMPLATE, "device")),
        Edit("another image without the template", applied(claiming("each", "PerReplica", version=2))),
        Edit(
            "a pod more without the template",
            scaled(kinds.PODCLIQUE, "each-0-a", 3),
            ending=Ending.STUCK,
            undo=scaled(kinds.PODCLIQUE, "each-0-a", 2),
        ),
        Edit(
            "a replica more without the template",
            scaled(SET, "all", 2),
            ending=Ending.STUCK,
            undo=scaled(SET, "all", 1),
        ),
        Edit("the template is created again", together(created(kinds.RESOURCE_CLAIM_TEMPLATE, template()), scaled(SET, "all", 2))),
        Edit("the template is deleted and kept", held(kinds.RESOURCE_CLAIM_TEMPLATE, "device")),
        Edit("a pod more from a template that is being deleted", scaled(kinds.PODCLIQUE, "each-0-a", 3)),
        Edit("both sets are deleted", deleted(SET, "each", "all")),
    ],
    before=created(kinds.RESOURCE_CLAIM_TEMPLATE, template()),
)


def owning(version: int = 1, name: str = "", scope: str = "PerReplica") -> Body:
    """A set whose pods share claims from a template of its own of this name, if it has one."""
    templates, shared = ([claim_template(name)], [share(name, scope)]) if name else ([], [])
    worker = clique("a", 2, minAvailable=1, pod_spec=running(version), resourceSharing=shared)
    return podcliqueset("dev", worker, resourceClaimTemplates=templates)


RENAMED_TEMPLATES = EditSeries(
    "renamed-templates",
    [owning(1, "device")],
    [
        Edit("a claim template is renamed", applied(owning(1, "other"))),
        Edit("a pod after that", together(deleted(kinds.POD, "dev"), claims_are_released)),
        Edit("all pods share a claim of another template", applied(owning(1, "third", "AllReplicas"))),
        Edit("all pods after that", together(all_deleted(kinds.POD, "dev"), claims_are_released)),
        Edit("no claim any more, and another image", applied(owning(2))),
        Edit("the set is deleted", deleted(SET, "dev")),
    ],
)
