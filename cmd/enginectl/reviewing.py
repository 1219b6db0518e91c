"""Reviewing: a stream of AdmissionReviews, each answered as soon as it is read."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import anyio

from engine.report.json import in_a_line
from engine.report.line import Line
from engine.report.printable import clipped, printable
from enginectl import output, wiring
from enginectl.around import UNKNOWN, references_in
from enginectl.document_stream import Entry, entries
from enginectl.exits import Exit, worst
from enginectl.manifest_files import NO_FILES
from enginectl.options import Output
from enginectl.running import Misuse, run
from enginectl.trust import protection
from enginectl.wiring import Wiring
from resources.admission.admit import admit
from resources.admission.json_patch import json_patch
from resources.admission.request import Decision, Request
from resources.admission.review import LARGEST, Judge, Misread, answer, misunderstood, question, refusal, uid_of
from resources.ports.references import KnownReferences

SHOWN = 400
"""How much is shown of a line."""


def reviewed(wired: Wiring, file: Path, against: str, form: Output) -> Exit:
    """QueryResult every review in the file, and answer with the exit code: the worst that was met."""
    code, around = look_around(wired, against)
    if code is not Exit.DONE:
        return code
    guarded, codes = protection(wired.settings), {Exit.DONE}
    source = "<stdin>" if file == Path("-") else printable(str(file))
    with opened(file) as stream:
        for entry in entries(stream, limit=LARGEST):
            codes.add(answer_to(entry, f"{source}:{entry.line}", form, lambda asked: admit(asked, wired.setup, around, guarded)))
    return worst(codes)


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The file, or standard input for `-`, to be read as it comes. Raises `Misuse` where there is none."""
    if file == Path("-"):
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except OSError as error:
        raise Misuse(f"{printable(str(file))}: {(error.strerror or 'cannot be read').lower()}") from None
    with stream:
        yield stream


def look_around(wired: Wiring, against: str) -> tuple[Exit, KnownReferences]:
    """The references that rules look at, looked at once, before the first review; and whether the look came to its end."""
    if against in ("", wiring.NOTHING):
        return Exit.DONE, UNKNOWN
    found = UNKNOWN

    async def work(stop: anyio.CancelScope) -> Exit:
        nonlocal found
        with stop:
            async with wiring.world(wired, against) as (provider, _):
                found = await references_in(wired, provider, against, wiring.where(wired, NO_FILES))
            return Exit.DONE
        return Exit.INTERRUPTED

    return run(work), found


def answer_to(entry: Entry, place: str, form: Output, judge: Judge) -> Exit:
    """QueryResult one review, or say why there is no answer."""
    try:
        if entry.fault:
            raise Misread(entry.fault)
        asked = question(entry.value)
    except Misread as fault:
        output.fault(f"{place}: {fault}")
        if fault.uid and form is Output.JSON:
            write(misunderstood(fault.uid, f"line {entry.line}: {fault}"))
        return Exit.FAILED
    decision = judge(asked)
    if form is Output.JSON:
        write(answer(uid_of(entry.value), asked, decision))
    else:
        output.say_all(told(asked, decision))
    return Exit.DONE if decision.allowed else Exit.DENIED


def write(document: Any) -> None:
    """One answer, at once: whoever asks may wait for it before asking again."""
    output.say_raw(f"{in_a_line(document)}\n")
    sys.stdout.flush()


def told(asked: Request, decision: Decision) -> Iterator[Line]:
    """A decision for people: what is asked, what becomes of it, and every field that is wrong or changed."""
    head = f"{asked.act} {printable(str(asked.id))}"
    if decision.allowed:
        yield Line(f"{head}: allowed", "good")
        steps = json_patch(asked.body, decision.body) if asked.body is not None and decision.body is not None else []
        for step in steps:
            value = f" {in_a_line(step['value'])}" if "value" in step else ""
            yield Line(f"  {step['op']} {clipped(step['path'], SHOWN)}{clipped(value, SHOWN)}", "faint")
    else:
        yield Line(f"{head}: denied ({refusal(asked.id, decision)['reason']})", "bad")
        for trouble in (decision.denial,) if decision.denial else decision.issues:
            yield Line(f"  {clipped(str(trouble), 2 * SHOWN)}")
    for warning in decision.warnings:
        yield Line(f"  warning: {clipped(warning, SHOWN)}", "held")
