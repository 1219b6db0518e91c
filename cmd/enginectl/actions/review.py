"""`engine review`: answers a stream of AdmissionReviews, each as soon as it is read."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from engine.report.json import one_line
from engine.report.printable import Line, clipped, printable
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit, worst
from enginectl.base.files import STDIN, open_stream
from enginectl.base.options import OutputFormat
from enginectl.base.runner import run_cancellable
from enginectl.input.admission import NO_REFERENCES, list_references
from enginectl.input.document_stream import StreamDocument, read_stream
from enginectl.wiring.cluster import EMPTY, LIVE, open_baseline
from enginectl.wiring.configuration import Wiring, protection
from enginectl.wiring.published_configuration import with_configuration
from enginectl.wiring.scope import select
from resources.admission.admit import admit
from resources.admission.consent_rules import listed_access, new_references, with_consent
from resources.admission.managed_rules import Protection
from resources.admission.request import Decision, Request
from resources.admission.review import (
    KIND,
    MAX_BYTES,
    Decide,
    MalformedReview,
    answer,
    error_answer,
    json_patch,
    refusal,
    request_of,
    uid_of,
)
from resources.model.gang_scheduling import gang_kinds, on_cluster
from resources.ports.references import KnownReferences

NO_MANIFESTS: Final = "; `engine diff -f FILE` judges manifests"


def review_file(wiring: Wiring, file: Path, against: str, format: OutputFormat) -> Exit:
    """Answer every review in the file, and return the worst exit code."""
    code, wiring, references = load_references(wiring, against)
    if code is not Exit.DONE:
        return code
    protected, codes = protection(wiring.settings, wiring.configuration), set[Exit]()
    source = "<stdin>" if file == STDIN else printable(str(file))

    def judge(request: Request) -> Decision:
        return reviewed(request, wiring, references, protected)

    with open_stream(file) as stream:
        for document in read_stream(stream, limit=MAX_BYTES):
            place = f"{source}:{document.line}"
            codes.add(answer_one(document, place, format, judge))
    if not codes:
        terminal.error(f"{source}: no AdmissionReview passed")
        return Exit.FAILED
    return worst(codes)


def reviewed(request: Request, wiring: Wiring, references: KnownReferences, protected: Protection) -> Decision:
    """The decision of a webhook, but for the rights of the user, which are not asked for."""
    decision = admit(request, wiring.configuration, references, protected)
    if not decision.allowed:
        return decision
    added = new_references(request, protected.operator)
    return with_consent(decision, request, added, listed_access(references, added))


def load_references(wiring: Wiring, against: str) -> tuple[Exit, Wiring, KnownReferences]:
    """What rules depend on: the wiring, of a cluster with the configuration of its installation, and the objects that they look up.

    Both are read once, before the first review. The code says whether that was interrupted.
    """
    if against in ("", EMPTY):
        return Exit.DONE, wiring, NO_REFERENCES
    judging, references = wiring, NO_REFERENCES

    async def read(known: Wiring) -> Exit:
        nonlocal judging, references
        async with open_baseline(known, against) as (provider, _):
            references = await list_references(known, provider, against, select(known), names_unknown=True)
            unserved = [kind.key for kind in gang_kinds(known.configuration) if not await provider.serves(kind)]
        judging = replace(known, client=None, configuration=on_cluster(known.configuration, unserved))
        return Exit.DONE

    code = run_cancellable(lambda: with_configuration(wiring, read) if against == LIVE else read(wiring))
    return code, judging, references


def answer_one(document: StreamDocument, place: str, format: OutputFormat, judge: Decide) -> Exit:
    """Write the answer to one review, or an error with its place if it is no review. Returns the exit code of this review."""
    try:
        if document.fault:
            raise MalformedReview(document.fault)
        request = request_of(document.value)
    except MalformedReview as fault:
        terminal.error(f"{place}: {fault}{NO_MANIFESTS if is_manifest(document.value) else ''}")
        if fault.uid and format is OutputFormat.JSON:
            write(error_answer(fault.uid, f"line {document.line}: {fault}"))
        return Exit.FAILED
    decision = judge(request)
    if format is OutputFormat.JSON:
        write(answer(uid_of(document.value), request, decision))
    else:
        terminal.print_lines(decision_lines(request, decision))
    return Exit.DONE if decision.allowed else Exit.DENIED


def is_manifest(document: Any) -> bool:
    """Whether a document is an object as users write it, and no review."""
    return isinstance(document, Mapping) and {"apiVersion", "kind"} <= document.keys() and document["kind"] != KIND


def write(answer: Any) -> None:
    """Write one answer and flush: the sender may wait for it before it sends the next review."""
    terminal.print_text(f"{one_line(answer)}\n")
    terminal.flush()


MAX_VALUE = 400
"""Characters of a path, value or warning that are shown."""


def decision_lines(request: Request, decision: Decision) -> Iterator[Line]:
    """The request, whether it is allowed, and every field that is wrong or changed."""
    head = f"{request.act} {printable(str(request.id))}"
    if decision.allowed:
        yield Line(f"{head}: allowed", "good")
        steps = json_patch(request.body, decision.body) if request.body is not None and decision.body is not None else []
        for step in steps:
            value = f" {one_line(step['value'])}" if "value" in step else ""
            yield Line(f"  {step['op']} {clipped(step['path'], MAX_VALUE)}{clipped(value, MAX_VALUE)}", "faint")
    else:
        yield Line(f"{head}: denied ({refusal(request.id, decision)['reason']})", "bad")
        for fault in (decision.denial,) if decision.denial else decision.issues:
            yield Line(f"  {clipped(str(fault), 2 * MAX_VALUE)}")
    for warning in (*decision.warnings, *filter(None, [decision.gangs])):
        yield Line(f"  warning: {clipped(warning, MAX_VALUE)}", "later")
