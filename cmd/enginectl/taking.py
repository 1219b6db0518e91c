"""Taking a snapshot: one look at a cluster, written down."""

import os
from collections.abc import Iterable
from pathlib import Path

from engine.report.printable import clipped, printable
from enginectl import output, wiring
from enginectl.exits import Exit
from enginectl.manifest_files import NO_FILES
from enginectl.running import Misuse
from enginectl.wiring import Wiring
from providers.snapshot import written


async def taken(wired: Wiring, out: Path | None) -> Exit:
    """Pass once, and write what is there; what could not be seen is told, for a preview against the rest would mislead."""
    async with wiring.world(wired, wiring.LIVE) as (provider, otherwise):
        sighting = await provider.observe(wiring.scope(wired.setup, wiring.where(wired, NO_FILES, otherwise=otherwise)))
    lives = {one.id: one for one in (*sighting.roots, *sighting.children, *sighting.references)}.values()
    documents = written(lives)
    if out is None:
        for document in documents:
            output.say_raw(document)
    else:
        write(out, documents)
    for kind, why in sighting.incomplete.items():
        output.fault(f"not every {kind} could be seen: {clipped(why, 200)}")
    code = Exit.INCOMPLETE if sighting.incomplete else Exit.DONE
    output.tell(f"{len(lives)} objects{f' in {printable(str(out))}' if out else ''}")
    return code


def write(out: Path, documents: Iterable[str]) -> None:
    """The file, whole or not at all, and for its owner's eyes: what is in it is scrubbed, and still nobody else's business."""
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.writelines(documents)
            draft.replace(out)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise Misuse(f"--out {printable(str(out))}: {(error.strerror or 'cannot be written').lower()}") from None
