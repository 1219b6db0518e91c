"""`engine graph`: the desired objects of manifests and what they depend on, as a drawing."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.report.diagram.languages import dot, mermaid
from engine.report.diagram.model import Diagram, of_graph
from engine.report.html.drawing import svg
from engine.resource import Hold, Want
from enginectl.actions.render import desired_by_root
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import GraphFormat
from enginectl.input.admission import admit_roots
from enginectl.input.roots import ManifestSources, load_roots
from enginectl.wiring.cluster import EMPTY
from enginectl.wiring.configuration import Wiring
from resources.preview.pod_patterns import patterns_of

WRITERS: Mapping[GraphFormat, Callable[[Sequence[Diagram]], str]] = {
    GraphFormat.DOT: dot,
    GraphFormat.MERMAID: mermaid,
    GraphFormat.SVG: svg,
}


def draw(wiring: Wiring, files: list[Path], format: GraphFormat, *, remote: bool = False) -> Exit:
    """Write the drawing, then the faults of manifests that are rejected, and return the exit code."""
    admitted = admit_roots(wiring, load_roots(wiring, ManifestSources(files, remote=remote), against=EMPTY))
    faults = [fault for faults in admitted.rejected.values() for fault in faults]
    diagrams: list[Diagram] = []
    for root, desired in desired_by_root(wiring, admitted.roots):
        resources = desired.graph.resources.items()
        names = patterns_of({id: resource.body for id, resource in resources if isinstance(resource, Want | Hold)})
        diagrams.append(of_graph(root, desired.graph, names))
        faults += [f"{root}: {problem}" for problem in desired.problems]
    terminal.print_text(WRITERS[format](diagrams))
    terminal.flush()
    for fault in faults:
        terminal.error(fault)
    return Exit.FAILED if faults else Exit.DONE
