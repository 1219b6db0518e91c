"""A snapshot: what it contains, what it leaves out, and that it reads back unchanged."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import Forbidden, InputError
from engine.ids import ResourceId
from engine.observed import live
from engine.operation import Cause, Delete
from engine.runtime.provider import Scope
from providers.documents import read_documents
from providers.snapshot import EMPTY, as_yaml, read, snapshot_documents
from resources.base.kinds import (
    KAI_QUEUE,
    POD,
    PODCLIQUESET,
    RESOURCE_CLAIM_TEMPLATE,
    SCALING_ADAPTER,
    SECRET,
    TOPOLOGY_BINDING,
    VOLCANO_QUEUE,
    unread,
)

TEXT = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


def body(kind: str, name: str, **rest: Any) -> dict[str, Any]:
    """An object as the API server returns it."""
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": "7", **rest.pop("metadata", {})}
    return {"apiVersion": rest.pop("apiVersion", "v1"), "kind": kind, "metadata": metadata, **rest}


def stored(tmp_path: Path, *bodies: dict[str, Any]) -> Path:
    """A snapshot file of these objects."""
    file = tmp_path / "snapshot.yaml"
    file.write_text("".join(snapshot_documents(live(one) for one in bodies)))
    return file


def test_a_snapshot_reads_back_with_identity_revision_and_owners(tmp_path: Path) -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-p", "controller": True}]
    one = body("Pod", "q", metadata={"ownerReferences": owners, "labels": {"a": "yes", "n": "012"}}, spec={"x": [1, "1", None, 1.5, "ü"]})

    (pod,) = read(stored(tmp_path, one)).lives

    assert pod.body == one
    assert (pod.id, pod.uid, pod.revision, pod.owners[0].uid) == (ResourceId("", "Pod", "a", "q"), "u-q", "7", "u-p")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(TEXT),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(TEXT), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@example("1e3")
@example("0o7")
@example("1_000")
@example("y")
@example("<<")
@example({"<<": {"a": 1}, "=": ".inf"})
def test_any_value_reads_back_unchanged_and_is_safe_to_print(value: object) -> None:
    text = as_yaml({"value": value})

    (document,) = read_documents(text.encode(), "f.yaml")
    assert document.value == {"value": value}
    assert text.isascii() and all(line.isprintable() for line in text.split("\n"))


def test_no_secret_data_is_snapshot_documents(tmp_path: Path) -> None:
    last = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hush"}}
    text = stored(tmp_path, body("Secret", "s", data={"token": "hush"}, metadata=last)).read_text()

    assert "hush" not in text and "token: (masked)" in text


def test_only_our_field_ownership_is_kept(tmp_path: Path) -> None:
    managed = [{"manager": "kubectl", "fieldsV1": {"f:a": {}}}, {"manager": "engine", "fieldsV1": {"f:b": {}}}]

    (pod,) = read(stored(tmp_path, body("Pod", "p", metadata={"managedFields": managed}))).lives

    assert pod.body["metadata"]["managedFields"] == [managed[1]]


def test_equal_objects_give_equal_bytes_in_any_order(tmp_path: Path) -> None:
    pods = [live(body("Pod", name)) for name in ("b", "a", "c")]

    assert "".join(snapshot_documents(pods)) == "".join(snapshot_documents(reversed(pods)))


@pytest.mark.anyio
async def test_it_lists_only_what_is_in_scope(tmp_path: Path) -> None:
    ours = {"labels": {"managed": "us"}}
    root = body("PodCliqueSet", "r", apiVersion="grove.io/v1alpha1")
    elsewhere = body("Pod", "far", metadata=ours | {"namespace": "b"})
    snapshot = read(
        stored(tmp_path, root, body("Pod", "p", metadata=ours), body("Pod", "foreign"), elsewhere, body("Secret", "s", metadata=ours))
    )

    observation = await snapshot.observe(Scope((PODCLIQUESET,), (POD,), "managed=us", ("a",)))

    assert [one.id.name for one in observation.roots] == ["r"]
    assert [one.id.name for one in observation.children] == ["p"]
    everywhere = await snapshot.observe(Scope((PODCLIQUESET,), (POD, SECRET), "managed=us"))
    assert len(everywhere.children) == 3
    assert await snapshot.get(far := ResourceId("", "Pod", "b", "far")) in snapshot.lives
    assert await snapshot.get(far._replace(namespace="c")) is None


@pytest.mark.anyio
async def test_it_refuses_writes() -> None:
    with pytest.raises(Forbidden):
        await EMPTY.execute(Delete(ResourceId("", "Pod", "a", "p"), "why", Cause.INTENT), {})


def test_what_kubectl_prints_is_a_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n"
        "  metadata: {name: p, namespace: a, uid: u, creationTimestamp: 2026-01-01T00:00:00Z}\n"
    )

    assert [one.id.name for one in read(file).lives] == ["p"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]\n", ":1: not a Kubernetes object: it must have apiVersion, kind and metadata"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
            ":1: Pod has no name or no uid: a snapshot must contain objects as the API server returns them",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u, creationTimestamp: never}\n",
            ":1: Pod p: malformed metadata: Invalid isoformat string: 'never'",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u, ownerReferences: [{}]}\n", ":1: Pod p: malformed metadata: 'kind'"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, uid: u}\n",
            ":5: Pod/p appears twice, first at {}:1",
        ),
        ("a: [\n", ":2: not YAML: did not find expected node content"),
    ],
)
def test_what_is_no_snapshot_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)

    with pytest.raises(InputError) as error:
        read(file)

    assert str(error.value) == f"{file}{message.format(file)}"


def test_a_missing_snapshot_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "gone.yaml")


@pytest.mark.anyio
async def test_references_are_listed_whatever_their_labels(tmp_path: Path) -> None:
    template, binding = body("ResourceClaimTemplate", "gpu"), body("ClusterTopologyBinding", "hall")
    template["apiVersion"], binding["apiVersion"] = RESOURCE_CLAIM_TEMPLATE.api_version, TOPOLOGY_BINDING.api_version
    snapshot = read(stored(tmp_path, template, binding, body("Pod", "p")))

    observation = await snapshot.observe(Scope((), (POD,), "managed=us", references=(RESOURCE_CLAIM_TEMPLATE, TOPOLOGY_BINDING)))

    assert sorted(one.id.name for one in observation.references) == ["gpu", "hall"]
    assert observation.children == ()


@pytest.mark.anyio
async def test_it_knows_which_kinds_the_cluster_did_not_serve(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text("".join(snapshot_documents([live(body("Pod", "p"))], {KAI_QUEUE.key, unread(SCALING_ADAPTER), "Elsewhere"})))
    snapshot = read(file)

    observation = await snapshot.observe(Scope((PODCLIQUESET,), (POD, SCALING_ADAPTER), "", references=(KAI_QUEUE, VOLCANO_QUEUE)))

    assert [one.id.name for one in snapshot.lives] == ["p"]
    assert observation.unserved == {KAI_QUEUE.key, unread(SCALING_ADAPTER)}
    assert [await snapshot.serves(kind) for kind in (KAI_QUEUE, VOLCANO_QUEUE)] == [False, True]


@pytest.mark.parametrize("unserved", ["7", "[[], 7, null]", "{a: b}", "null"])
def test_a_record_of_kinds_in_another_shape_is_ignored(tmp_path: Path, unserved: str) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(f"apiVersion: engine.grove.io/v1\nkind: Snapshot\nmetadata: {{name: s, uid: ''}}\nunserved: {unserved}\n")

    assert (read(file).lives, read(file).unserved) == ((), frozenset())
