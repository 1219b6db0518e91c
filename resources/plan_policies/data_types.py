"""Data types: everything that expressions of plan policies can see, with the type and meaning of each field. Each is always there."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

BOOL, INT, STRING, STRINGS = "bool", "int", "string", "map(string, string)"
"""The types of fields that are no messages; `STRINGS` is a map. `list(TYPE)` is a list."""


class Field(NamedTuple):
    """A field of a data type."""

    type: str
    meaning: str


class DataType(Struct, frozen=True):
    """A data type of expressions."""

    meaning: str
    fields: Mapping[str, Field]


def list_of(type: str) -> str:
    """The type of a list."""
    return f"list({type})"


def item_of(type: str) -> str | None:
    """The type of the items of a list; None if the type is no list."""
    return type.removeprefix("list(").removesuffix(")") if type.startswith("list(") else None


DATA_TYPES: Final[Mapping[str, DataType]] = {
    "Plan": DataType(
        "What a sync would do, from the first pass to the end, to all sets that the policy judges.",
        {
            "summary": Field("Summary", "the totals"),
            "end": Field(STRING, "the worst end of its sets: `unfinished`, `repeats`, `stuck`, `unknown` or `settled`"),
            "complete": Field(BOOL, "whether everything could be listed, and everything that follows was computed"),
            "sets": Field(list_of("Set"), "the sets for which something is done"),
            "operations": Field(list_of("Operation"), "the operations on all sets, pass after pass"),
            "deletions": Field(list_of("Operation"), "those of them that delete or replace an object"),
            "blocked": Field(list_of("Blocked"), "what is left until a user or another controller acts, of all sets"),
        },
    ),
    "Set": DataType(
        "A set, or another root such as a graph, for which something is done.",
        {
            "kind": Field(STRING, "`PodCliqueSet`, `DynamoGraphDeployment`, …"),
            "namespace": Field(STRING, "its namespace; empty for kinds without one"),
            "name": Field(STRING, "its name"),
            "labels": Field(STRINGS, "its labels, as they should be"),
            "annotations": Field(STRINGS, "its annotations, as they should be"),
            "isNew": Field(BOOL, "whether it does not exist yet"),
            "isDeleted": Field(BOOL, "whether it is being deleted, is deleted by this plan, or is gone and leaves objects behind"),
            "isPruned": Field(BOOL, "whether it is deleted because no manifest has it any more"),
            "replicas": Field("Replicas", "how many replicas it asks for"),
            "images": Field(list_of(STRING), "the images of its containers, as they should be, each once"),
            "summary": Field("Summary", "the totals"),
            "end": Field(STRING, "`settled`, `stuck`, `repeats`, `unfinished`, or `unknown` without a forecast"),
            "cliques": Field(
                list_of("Availability"),
                "its cliques outside groups with fewer ready pods for a time, or below their minimum for good",
            ),
            "groups": Field(list_of("Availability"), "its scaling groups with fewer available replicas, likewise"),
            "operations": Field(list_of("Operation"), "the operations on it, pass after pass"),
            "deletions": Field(list_of("Operation"), "those of them that delete or replace an object"),
            "blocked": Field(list_of("Blocked"), "what is left until a user or another controller acts"),
        },
    ),
    "Summary": DataType(
        "Totals of one set or of the plan.",
        {
            "podsRestarted": Field(INT, "pods that are deleted and created again in the same place"),
            "podsAdded": Field(INT, "further pods that are created"),
            "podsRemoved": Field(INT, "further pods that are deleted"),
            "gpusRestarted": Field(INT, "the GPUs of the restarted pods"),
            "gpusAdded": Field(INT, "the GPUs of the added pods"),
            "gpusRemoved": Field(INT, "the GPUs of the removed pods"),
            "domainsMade": Field(INT, "fabric domains that are created"),
            "domainsRemoved": Field(INT, "fabric domains that are deleted"),
            "domainsReplaced": Field(INT, "fabric domains that are deleted and created again"),
            "creates": Field(INT, "objects that are created"),
            "patches": Field(INT, "changes of objects"),
            "scales": Field(INT, "changes of a number of replicas"),
            "replaces": Field(INT, "objects that are deleted and created anew by one operation"),
            "releases": Field(INT, "removals of finalizers"),
            "deletes": Field(INT, "objects that are deleted"),
        },
    ),
    "Replicas": DataType(
        "How many replicas a set asks for; 1 for other kinds while they exist.",
        {
            "before": Field(INT, "before the plan; 0 for a new set"),
            "after": Field(INT, "after the plan; 0 for a deleted set"),
        },
    ),
    "Availability": DataType(
        "How many members of a clique or scaling group are ready while the plan is carried out.",
        {
            "name": Field(STRING, "the name of the object, e.g. `serving-0-frontend`"),
            "replica": Field(INT, "the replica of the set that it is in; -1 if that is not known"),
            "group": Field(STRING, "the scaling group that it is or is in; empty for a clique outside of groups"),
            "before": Field(INT, "ready members before the first operation"),
            "lowest": Field(INT, "the fewest ready members at any time"),
            "after": Field(INT, "ready members at the end"),
            "minAvailable": Field(INT, "its minimum; 0 if it has none"),
            "below": Field(BOOL, "whether it has its minimum before, and not at the lowest"),
        },
    ),
    "Operation": DataType(
        "One API call. Writes of statuses are left out.",
        {
            "verb": Field(STRING, "`create`, `patch`, `scale`, `replace`, `release` or `delete`"),
            "group": Field(STRING, "the API group of the object; empty for the core group"),
            "kind": Field(STRING, "the kind of the object"),
            "namespace": Field(STRING, "the namespace of the object"),
            "name": Field(STRING, "the name of the object; that of a new pod may get another ending"),
            "set": Field(STRING, "the set that it belongs to, as `namespace/name`"),
            "reason": Field(STRING, "the reason in one word, e.g. `TemplateChanged`; empty if it has none"),
            "cause": Field(STRING, "`intent`: a manifest changed; `drift`: the cluster did"),
            "asked": Field(BOOL, "whether a user asked for it"),
            "stage": Field(INT, "the number of its pass: 0 is the next one"),
            "labels": Field(STRINGS, "the labels of the object as it is; of a create, those that it gets"),
            "annotations": Field(STRINGS, "the annotations of the object, likewise"),
            "fields": Field(list_of(STRING), "the paths of the fields that change, e.g. `spec.replicas`; empty for creates and deletes"),
        },
    ),
    "Blocked": DataType(
        "An object that is not written until a user or another controller acts.",
        {
            "kind": Field(STRING, "the kind of the object"),
            "namespace": Field(STRING, "the namespace of the object"),
            "name": Field(STRING, "the name of the object"),
            "set": Field(STRING, "the set that it belongs to, as `namespace/name`"),
            "reason": Field(STRING, "the reason in one word; empty if it has none"),
            "message": Field(STRING, "the reason as a sentence, with what to do"),
        },
    ),
}
"""Name -> type. `Plan` is that of `plan` in expressions of scope Plan, `Set` that of `set` in those of scope Set and in conditions."""
