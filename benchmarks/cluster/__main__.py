"""Measures workloads on fresh control planes: the engine, and the bare client beside it. `make bench-cluster ARGS='b1 b3 --profile'`.

    export KUBEBUILDER_ASSETS=$(tests/controlplane/build)
    python -m benchmarks.cluster b1 --set replicas=50
    python -m benchmarks.cluster b1 --gangs
    python -m benchmarks.cluster b1 --operator 'other=other-operator --config FILE' --crds other=FOLDER

Prints one JSON line for each phase, and at the end a page: the table, other operators beside the engine; what was written; the profile.
A workload that fails is reported; the figures of the others stay.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster.census import Census
from benchmarks.cluster.fairness import FAIRNESS, SMALL
from benchmarks.cluster.fairness import figures as fairness_figures
from benchmarks.cluster.figures import Figures
from benchmarks.cluster.profile import Profile
from benchmarks.cluster.requests import AuditLog
from benchmarks.cluster.runs import Run, most_replicas
from benchmarks.cluster.subjects import ROOT, Bare, Operator, Subject, engine_command, engine_variables, words
from benchmarks.cluster.table import BARE, ENGINE, WITH_GANGS, WITHOUT_GANGS, gang_ratios, markdown, profile_table, summary, writes_table
from benchmarks.cluster.workloads import WORKLOADS, Workload, changed
from benchmarks.sections import between_markers
from engine.runtime.clock import SystemClock
from tests.controlplane.accounts import OPERATOR, grant, grant_everything, operator_permissions
from tests.controlplane.cluster import ControlPlane, binary, running
from tests.controlplane.gangs import GATES

CRDS = ROOT / "deploy" / "crds"
DOCUMENT = ROOT / "docs" / "performance.md"
FIRST_PAGE = ROOT / "README.md"
RESERVED = (ENGINE, BARE, *WITHOUT_GANGS)
ADMINISTRATOR = "operator-with-all-rights"
"""The account of other operators."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Another operator to measure beside."""

    command: str
    """It is given KUBECONFIG, and rights to do everything."""
    crds: Sequence[Path]
    """The files and folders with its definitions."""


def main() -> None:
    """Run the command line. Exits with 1 if a workload has failed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # The control planes end, too.
    given = arguments()
    sizes = {name: int(value) for name, _, value in (each.partition("=") for each in given.set)}
    others = contenders(given.operator, given.crds)
    figures: list[Figures] = []
    failed: list[str] = []
    with given.out.open("a") if given.out else sys.stdout as out:
        for name in given.workloads or sorted(WORKLOADS):
            if name == FAIRNESS:
                with cluster(SMALL, [CRDS], keep=given.keep) as plane:
                    for line in fairness_figures(plane, sizes):
                        print(json.dumps(line), file=out, flush=True)
                continue
            workload = changed(WORKLOADS[name], sizes)
            subjects = (ENGINE, BARE, *WITHOUT_GANGS) if given.gangs else (ENGINE, BARE)
            for subject in given.only or (*subjects, *others):
                try:
                    for each in measured(workload, sizes, subject, others.get(subject), with_profile=given.profile, keep=given.keep):
                        figures.append(each)
                        print(each.line(), file=out, flush=True)
                except Exception:
                    failed.append(f"{name} of {subject}")
                    traceback.print_exc()
    table = markdown(figures)
    sys.stderr.write(f"\n{table}\n{writes_table(figures)}\n{profile_table(figures)}\n{gang_ratios(figures)}")
    if given.document:
        publish(figures)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def contenders(operators: Sequence[tuple[str, str]], crds: Sequence[tuple[str, str]]) -> dict[str, Contender]:
    """The other operators by name. One without definitions of its own is given ours. Raises `SystemExit` if a name is none of them."""
    given = dict(operators)
    if unknown := [name for name, _ in crds if name not in given]:
        sys.exit(f"--crds {unknown[0]}=…: there is no --operator {unknown[0]}=COMMAND")
    if taken := [name for name in given if name in RESERVED]:
        sys.exit(f"--operator {taken[0]}=…: this is the name of what is measured anyway")
    own = {name: [Path(path) for each, path in crds if each == name] for name in given}
    return {name: Contender(command, own[name] or [CRDS]) for name, command in given.items()}


def named(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, split. Raises `argparse.ArgumentTypeError` unless both are there."""
    name, _, value = text.partition("=")
    if not name or not value.strip():
        raise argparse.ArgumentTypeError(f"NAME=VALUE is expected, not {text!r}")
    return name, value


def publish(figures: Sequence[Figures]) -> None:
    """Write the tables between the markers of the documents."""
    when = SystemClock().now().strftime("%Y-%m-%d")
    sections = {
        "bench-cluster": markdown(figures),
        "bench-cluster-date": f"Measured on {when}.\n",
        "bench-cluster-profile": profile_table(figures),
    }
    DOCUMENT.write_text(between_markers(DOCUMENT.read_text(), sections))
    FIRST_PAGE.write_text(between_markers(FIRST_PAGE.read_text(), {"bench-cluster-summary": summary(figures)}))


def measured(
    workload: Workload, sizes: Mapping[str, int], name: str, contender: Contender | None, *, with_profile: bool, keep: bool
) -> Iterator[Figures]:
    """The figures of one workload for one subject, on a control plane of its own."""
    with cluster(workload, contender.crds if contender else [CRDS], keep=keep, gangs=name in WITHOUT_GANGS) as plane:
        census = Census(plane)
        profile = Profile(plane.folder / "profile.jsonl") if with_profile and name in (ENGINE, WITH_GANGS) else None
        options = ("--profile", str(plane.folder / "profile.jsonl")) if profile else ()
        subject: Subject
        if name.startswith(BARE):
            subject = Bare(name, plane, workload, sizes, most=most_replicas(workload), account=OPERATOR)
        elif contender:
            subject = Operator(name, words(contender.command), plane, workload, account=ADMINISTRATOR, variables={})
        else:
            subject = Operator(name, engine_command(*options), plane, workload, account=OPERATOR, variables=engine_variables())
        try:
            if isinstance(subject, Operator):
                subject.until_leading()
            yield from Run(workload, subject, census, AuditLog(plane.audit_log), profile).phases()
        finally:
            subject.close()


@contextmanager
def cluster(workload: Workload, crds: Sequence[Path], *, keep: bool, gangs: bool = False) -> Iterator[ControlPlane]:
    """A fresh control plane with these definitions and enough nodes; its folder is removed unless it is to be kept.

    `gangs`: whether it serves PodGroups, so that kube-scheduler schedules gangs.
    """
    with _folder(keep) as folder:
        parts = ("kcm", "scheduler", "kwok")
        flags = ("--audit-log-mode=batch", "--audit-log-maxsize=20000")
        with running(Path(folder), parts, nodes=workload.nodes, audit=True, flags=flags, gangs=GATES if gangs else "") as plane:
            define(plane, crds)
            grant(plane, operator_permissions())
            grant_everything(plane, ADMINISTRATOR)
            yield plane


@contextmanager
def _folder(keep: bool) -> Iterator[str]:
    if keep:
        folder = tempfile.mkdtemp(prefix="bench-")
        sys.stderr.write(f"logs are in {folder}\n")
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            yield folder


def define(plane: ControlPlane, crds: Sequence[Path]) -> None:
    """Create the custom resource definitions in these files and folders, and wait until they are served."""
    kubectl = [binary("kubectl"), "--kubeconfig", str(plane.kubeconfig())]
    files = [word for path in crds for word in ("-f", str(path))]
    subprocess.run([*kubectl, "apply", "--server-side", *files], check=True, stdout=subprocess.DEVNULL)
    time.sleep(1)
    subprocess.run(
        [*kubectl, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"], check=True, stdout=subprocess.DEVNULL
    )


def arguments() -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "workloads", nargs="*", choices=[*WORKLOADS, FAIRNESS, []], metavar="WORKLOAD", help="b1 … b5, all of them by default; fairness"
    )
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=NUMBER", help="another size, e.g. replicas=50")
    parser.add_argument("--only", action="append", metavar="SUBJECT", help=f"{ENGINE}, {BARE} or the name of another operator")
    parser.add_argument("--profile", action="store_true", help="tell where the engine's seconds went")
    parser.add_argument("--gangs", action="store_true", help="also with gangs of kube-scheduler, in turn")
    parser.add_argument(
        "--operator",
        action="append",
        default=[],
        type=named,
        metavar="NAME=COMMAND",
        help="another operator to measure beside, which is given KUBECONFIG; more than one may be given",
    )
    parser.add_argument(
        "--crds", action="append", default=[], type=named, metavar="NAME=PATH", help="the definitions of that operator, instead of ours"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="append the JSON lines to this file instead of printing them")
    parser.add_argument(
        "--document", action="store_true", help="write the tables into docs/performance.md and, of all five, into README.md"
    )
    parser.add_argument("--keep", action="store_true", help="keep the folders with the logs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
