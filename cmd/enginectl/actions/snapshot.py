"""`engine snapshot`: writes the observed objects to a file."""

import os
from collections.abc import Iterable
from pathlib import Path

from engine.report.printable import printable
from enginectl.base import terminal
from enginectl.base.errors import UsageError
from enginectl.base.exit_codes import Exit
from enginectl.wiring.cluster import LIVE, open_baseline
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import scope_of, select
from providers.snapshot import snapshot_documents


async def take_snapshot(wiring: Wiring, out: Path | None) -> Exit:
    """List everything once and write it to `out` or stdout. Kinds that could not be listed completely are named on stderr (exit 5)."""
    async with open_baseline(wiring, LIVE) as (provider, namespaces):
        selection = select(wiring, default=namespaces)
        observation = await provider.observe(scope_of(wiring.configuration, selection))
    objects = {live.id: live for live in (*observation.roots, *observation.children, *observation.references)}.values()
    documents = snapshot_documents(objects)
    if out is None:
        for document in documents:
            terminal.print_text(document)
    else:
        write(out, documents)
    terminal.incomplete(observation.incomplete)
    terminal.notice(f"{len(objects)} objects{f' in {printable(str(out))}' if out else ''}")
    return Exit.INCOMPLETE if observation.incomplete else Exit.DONE


def write(out: Path, documents: Iterable[str]) -> None:
    """Write the file atomically, readable by its owner only. Raises `UsageError` if it cannot be written."""
    draft = out.parent / f".{out.name}.{os.getpid()}"
    try:
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.writelines(documents)
            draft.replace(out)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--out {printable(str(out))}: {(error.strerror or 'cannot be written').lower()}") from None
