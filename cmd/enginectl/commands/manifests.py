"""`engine manifests`: what must be installed in a cluster before the engine can work in it, computed from the models."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import ObjectFormat, options
from enginectl.commands import installation
from resources.install.modes import Use


class GraphStorage(StrEnum):
    """The version in which a server stores graphs."""

    V1ALPHA1 = "v1alpha1"
    V1BETA1 = "v1beta1"


manifests = typer.Typer(name="manifests", help="Print what must be installed in a cluster first.", no_args_is_help=True)


@manifests.callback()
def group() -> None:
    """Print what must be installed in a cluster first."""


@manifests.command()
def crds(
    format: Annotated[ObjectFormat, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.")] = ObjectFormat.YAML,
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
    format: Annotated[ObjectFormat, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.")] = ObjectFormat.YAML,
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
    format: Annotated[ObjectFormat, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.")] = ObjectFormat.YAML,
    mode: Annotated[
        Use, typer.Option(help="What the account does: run (a Deployment), sync (a CronJob), or read (only the role of readers).")
    ] = Use.RUN,
    service_account: Annotated[str, typer.Option(metavar="NAME", help="The engine's own account.")] = "grove-engine",
    shards: Annotated[int, typer.Option(min=1, help="Into how many shards `engine run` divides the namespaces.")] = 1,
    graphs: installation.Graphs = True,
    namespaces: installation.Namespaces = None,
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


manifests.command()(installation.webhooks)
manifests.command()(installation.deployment)
manifests.command()(installation.cronjob)
manifests.command("all")(installation.everything)
