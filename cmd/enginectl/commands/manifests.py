"""`engine manifests`: what must be installed in a cluster before the engine can work in it, computed from the models."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import ObjectFormat, options
from resources.install.modes import REPLICAS, SCHEDULE, TIMEOUT, AdmissionMode, Mode, Use

Format = Annotated[ObjectFormat, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.")]
Image = Annotated[str, typer.Option(metavar="IMAGE", help="The image of the engine.")]
InitImage = Annotated[str, typer.Option(metavar="IMAGE", help="The image of the init container of workloads.")]
Tag = Annotated[str, typer.Option(metavar="TAG", help="The tag of images that are given without one. Default: this release.")]
PullSecrets = Annotated[list[str] | None, typer.Option("--image-pull-secret", metavar="NAME", help="A Secret for the image. Repeatable.")]
Replicas = Annotated[int, typer.Option(min=0, metavar="N", help="Pods of the Deployment.")]
Shards = Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Parts of the namespaces, each with its own leader.")]
Graphs = Annotated[bool, typer.Option(help="Whether DynamoGraphDeployments are managed; without: dynamo.enabled is false.")]
Namespaces = Annotated[
    list[str] | None, typer.Option("--workload-namespace", metavar="NAME", help="Manage workloads in this namespace only. Repeatable.")
]
Page = Annotated[bool, typer.Option("--ui", help="Serve the page about workloads.")]
Schedule = Annotated[str, typer.Option(metavar="CRON", help="When the CronJob starts.")]
Timeout = Annotated[str, typer.Option(metavar="DURATION", help="Maximum duration of a job of the CronJob.")]
Admission = Annotated[AdmissionMode | None, typer.Option(help="What judges new sets. Default: webhooks, and policies for a CronJob.")]
NetworkPolicy = Annotated[bool, typer.Option("--network-policy", help="Add a NetworkPolicy.")]
ServiceMonitor = Annotated[bool, typer.Option("--service-monitor", help="Add a ServiceMonitor of the Prometheus operator.")]


class GraphStorage(StrEnum):
    """The version in which a server stores graphs."""

    V1ALPHA1 = "v1alpha1"
    V1BETA1 = "v1beta1"


UNUSED = {Mode.CRONJOB: ("replicas", "ui", "network_policy", "service_monitor"), Mode.DEPLOYMENT: ("schedule", "timeout")}
"""Mode -> the options that have no effect in it."""
manifests = typer.Typer(name="manifests", help="Print what must be installed in a cluster first.", no_args_is_help=True)


@manifests.callback()
def group() -> None:
    """Print what must be installed in a cluster first."""


@manifests.command()
def crds(
    format: Format = ObjectFormat.YAML,
    folder: Annotated[Path | None, typer.Option("--dir", metavar="DIR", help="Write each definition to a YAML file in DIR.")] = None,
    converter: Annotated[
        str, typer.Option("--converter", metavar="NAMESPACE", help="Serve graphs in both versions: the engine in NAMESPACE converts them.")
    ] = "",
    storage: Annotated[
        GraphStorage, typer.Option("--graph-storage", help="With --converter: how graphs are stored. Keep what an existing definition has.")
    ] = GraphStorage.V1ALPHA1,
) -> Exit:
    """Print the CustomResourceDefinitions of our kinds, for `kubectl apply --server-side -f -`."""
    from enginectl.actions.manifests import print_crds, write_crds
    from enginectl.base.exit_codes import UsageError

    if folder and (format is ObjectFormat.JSON or converter):
        raise UsageError("--dir writes YAML files with one version of each kind; leave out -o json and --converter")
    return write_crds(folder) if folder else print_crds(converter, storage.value, as_json=format is ObjectFormat.JSON)


@manifests.command()
def policies(
    ctx: typer.Context,
    format: Format = ObjectFormat.YAML,
    mutating: Annotated[
        bool, typer.Option("--mutating", help="Also MutatingAdmissionPolicies, for API servers that serve them (v1beta1).")
    ] = False,
    service_account: Annotated[
        str, typer.Option(metavar="NAMESPACE/NAME", help="The engine's own account, which may change managed objects.")
    ] = "",
) -> Exit:
    """Print the admission rules as ValidatingAdmissionPolicies, for clusters without webhooks.

    They depend on the configuration (--config). What CEL cannot express is listed in comments, with -o json in `notStated`.
    """
    from enginectl.actions.manifests import print_policies
    from enginectl.wiring.configuration import wire

    return print_policies(wire(options(ctx)), service_account, mutating=mutating, as_json=format is ObjectFormat.JSON)


@manifests.command()
def rbac(
    ctx: typer.Context,
    format: Format = ObjectFormat.YAML,
    mode: Annotated[
        Use, typer.Option(help="What the account does: run (a Deployment), sync (a CronJob), or read (only the role of readers).")
    ] = Use.RUN,
    service_account: Annotated[str, typer.Option(metavar="NAME", help="The engine's own account.")] = "grove-engine",
    shards: Annotated[int, typer.Option(min=1, help="Into how many shards `engine run` divides the namespaces.")] = 1,
    graphs: Graphs = True,
    namespaces: Namespaces = None,
) -> Exit:
    """Print the ServiceAccount and the roles that the engine needs, and a role for commands that only read.

    They depend on the configuration (--config). --namespace is where the engine runs: grove-system by default.
    """
    from enginectl.actions.manifests import narrowed, print_rbac
    from enginectl.wiring.configuration import wire
    from resources.install.roles import Account

    chosen = options(ctx)
    account = Account(chosen.namespace, service_account) if chosen.namespace else Account(name=service_account)
    wiring = narrowed(wire(chosen), graphs=graphs, namespaces=namespaces or ())
    return print_rbac(wiring, account, mode, shards=shards, as_json=format is ObjectFormat.JSON)


@manifests.command()
def webhooks(ctx: typer.Context, format: Format = ObjectFormat.YAML) -> Exit:
    """Print the webhook configurations. The engine adds the CA of its certificate to them."""
    return _print(ctx, format, ("admission",), Mode.DEPLOYMENT, AdmissionMode.WEBHOOKS, {})


@manifests.command()
def deployment(
    ctx: typer.Context,
    format: Format = ObjectFormat.YAML,
    image: Image = "grove-engine",
    init_image: InitImage = "grove-initc",
    tag: Tag = "",
    pull_secrets: PullSecrets = None,
    replicas: Replicas = REPLICAS,
    shards: Shards = 1,
    ui: Page = False,
    admission: Admission = None,
    network_policy: NetworkPolicy = False,
    service_monitor: ServiceMonitor = False,
) -> Exit:
    """Print the Deployment of `engine run` with its configuration, Service and what else its pods need.

    --namespace is where it runs: grove-system by default. --config is the configuration that it gets.
    """
    chosen = _images(image, init_image, tag, pull_secrets) | {"replicas": replicas, "page": ui}
    chosen |= {"network_policy": network_policy, "service_monitor": service_monitor}
    return _print(ctx, format, ("configuration", "workload", "network", "monitoring"), Mode.DEPLOYMENT, admission, chosen, shards=shards)


@manifests.command()
def cronjob(
    ctx: typer.Context,
    format: Format = ObjectFormat.YAML,
    image: Image = "grove-engine",
    init_image: InitImage = "grove-initc",
    tag: Tag = "",
    pull_secrets: PullSecrets = None,
    schedule: Schedule = SCHEDULE,
    timeout: Timeout = TIMEOUT,
) -> Exit:
    """Print the CronJob of `engine sync` with its configuration and its Lease."""
    chosen = _images(image, init_image, tag, pull_secrets) | {"schedule": schedule, "timeout": timeout}
    return _print(ctx, format, ("configuration", "workload"), Mode.CRONJOB, None, chosen)


@manifests.command("all")
def everything(
    ctx: typer.Context,
    format: Format = ObjectFormat.YAML,
    mode: Annotated[Mode, typer.Option(help="Reconcile all the time, or every few minutes.")] = Mode.DEPLOYMENT,
    admission: Admission = None,
    crds: Annotated[bool, typer.Option("--crds/--no-crds", help="With or without the CustomResourceDefinitions.")] = True,
    image: Image = "grove-engine",
    init_image: InitImage = "grove-initc",
    tag: Tag = "",
    pull_secrets: PullSecrets = None,
    replicas: Replicas = REPLICAS,
    shards: Shards = 1,
    ui: Page = False,
    schedule: Schedule = SCHEDULE,
    timeout: Timeout = TIMEOUT,
    graphs: Graphs = True,
    namespaces: Namespaces = None,
    mutating: Annotated[bool, typer.Option("--mutating", help="With policies: also MutatingAdmissionPolicies (v1beta1).")] = False,
    network_policy: NetworkPolicy = False,
    service_monitor: ServiceMonitor = False,
) -> Exit:
    """Print a whole installation, for `kubectl apply --server-side -f -`: the same objects as the chart's.

    --namespace is where it runs: grove-system by default. --config is the configuration that it gets.
    Without the definitions (--no-crds) the same command shows what `kubectl delete -f -` should remove.
    """
    chosen = _images(image, init_image, tag, pull_secrets) | {"replicas": replicas, "page": ui}
    chosen |= {
        "schedule": schedule,
        "timeout": timeout,
        "network_policy": network_policy,
        "service_monitor": service_monitor,
    }
    _note_unused(ctx, mode)
    parts = ("namespace", *(["crds"] if crds else []), "rbac", "configuration", "workload", "network", "admission", "monitoring")
    return _print(ctx, format, parts, mode, admission, chosen, shards=shards, graphs=graphs, namespaces=namespaces, mutating=mutating)


def _note_unused(ctx: typer.Context, mode: Mode) -> None:
    """Write a note that names the given options without effect, if there are any."""
    from enginectl.base import terminal

    given = [name for name in UNUSED[mode] if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        terminal.note(f"without effect with --mode {mode}: {names}")


def _images(image: str, init_image: str, tag: str, pull_secrets: list[str] | None) -> dict[str, Any]:
    """The choices about images, as fields of an `EngineInstallation`."""
    from enginectl.base.exit_codes import UsageError
    from resources.ports.configuration import tagged

    for option, name in (("--image", image), ("--init-image", init_image)):
        if not name.strip():
            raise UsageError(f"{option} is empty: give the name of an image")
    return {"image": tagged(image, tag), "waiter_image": tagged(init_image, tag), "pull_secrets": tuple(pull_secrets or ())}


def _print(
    ctx: typer.Context,
    format: ObjectFormat,
    parts: tuple[str, ...],
    mode: Mode,
    admission: AdmissionMode | None,
    chosen: dict[str, Any],
    *,
    shards: int = 1,
    graphs: bool = True,
    namespaces: list[str] | None = None,
    mutating: bool = False,
) -> Exit:
    from enginectl.actions.installation import installation_of, print_installation
    from enginectl.wiring.configuration import wire

    wiring = wire(options(ctx))
    installation = installation_of(wiring, mode, admission, chosen, shards, graphs=graphs, namespaces=namespaces or ())
    return print_installation(wiring, installation, parts, mutating=mutating, as_json=format is ObjectFormat.JSON)
