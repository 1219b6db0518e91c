"""`engine schema`: the shape of a document, or of one of our kinds, for programs and editors."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit


def schema(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="diff|plan|policy|sync|KIND", help="A document; or a kind, e.g. podcliqueset.")],
    strict: Annotated[bool, typer.Option("--strict", help="Refuse unknown fields, as kubeconform -strict does. For a KIND.")] = False,
    version: Annotated[str, typer.Option("--api-version", metavar="VERSION", help="The version of a KIND, e.g. v1beta1.")] = "",
) -> Exit:
    """Print the JSON Schema of a document or of a kind.

    Documents: what `diff -o json` and `sync -o json` write, the plans of --out, the policies that --policy reads. Within a version, keys
    and values are only added: ignore those that you do not know.

    Kinds: podcliqueset, podclique, podcliquescalinggroup, podgang, clustertopologybinding, dynamographdeployment and
    dynamographdeploymentscalingadapter, pod specs included, each in one file, for editors and kubeconform.
    """
    from enginectl.actions.schema import print_schema

    return print_schema(name, version, strict=strict)
