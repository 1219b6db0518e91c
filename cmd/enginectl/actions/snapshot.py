"""`engine snapshot`: writes the observed objects to a file."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from engine.blueprint import relevant_incomplete
from engine.errors import ClusterError, Unauthorized
from engine.memo import Memo
from engine.observed import Live, unlisted_texts
from engine.report.printable import printable
from engine.runtime.provider import TRANSIENT, Provider
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.files import private_file
from enginectl.wiring.cluster import LIVE, open_baseline
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import scope_of, select
from providers.snapshot import snapshot_documents
from resources.ports.configuration import Configuration
from resources.preview.assumed_secrets import may_not_list_secrets, other_kinds
from resources.registry import BLUEPRINTS

UNREAD_SECRETS: Final = "the snapshot has no Secrets: you may not list them"


async def take_snapshot(wiring: Wiring, out: Path | None) -> Exit:
    """List everything once and write it to `out` or stdout. Kinds that could not be listed completely are named on stderr (exit 5)."""
    async with open_baseline(wiring, LIVE) as (provider, namespaces):
        selection = select(wiring, default=namespaces)
        observation = await provider.observe(scope_of(wiring.configuration, selection))
        named = await named_objects(provider, observation.roots, wiring.configuration)
    objects = {live.id: live for live in (*observation.roots, *observation.children, *observation.references, *named)}.values()
    documents = snapshot_documents(objects, observation.unserved, observation.incomplete)
    if out is None:
        for document in documents:
            terminal.print_text(document)
    else:
        write(out, documents)
    present = {root.id.kind for root in observation.roots}
    incomplete = relevant_incomplete(BLUEPRINTS, observation.incomplete, observation.unserved, present, wiring.configuration)
    if may_not_list_secrets(incomplete):
        terminal.note(UNREAD_SECRETS)
        incomplete = other_kinds(incomplete)
    terminal.incomplete(unlisted_texts(incomplete))
    terminal.notice(f"{len(objects)} objects{f' in {printable(str(out))}' if out else ''}")
    return Exit.INCOMPLETE if incomplete else Exit.DONE


async def named_objects(provider: Provider, roots: Iterable[Live], configuration: Configuration) -> list[Live]:
    """The objects that roots name and that are not listed, such as the claims of a graph. What must not be read is left out.

    Raises transient errors.
    """
    looking = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS if blueprint.lookup_kinds(configuration)}
    looking_roots = (root for root in roots if root.id.kind in looking)
    ids = {id for root in looking_roots for id in looking[root.id.kind].lookups(root.id, root.body, configuration, Memo())}
    named: list[Live] = []
    for id in sorted(ids):
        try:
            live = await provider.get(id)
        except (*TRANSIENT, Unauthorized):
            raise
        except ClusterError:
            continue
        named += [live] if live is not None else []
    return named


def write(out: Path, documents: Iterable[str]) -> None:
    """Write the file atomically, readable by its owner only. Raises `UsageError` if it cannot be written."""
    with private_file(out, "--out") as file:
        file.writelines(document.encode("ascii") for document in documents)
