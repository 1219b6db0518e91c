"""The table in docs/permissions.md is computed. To update it: `python -m tests.resources.install.test_permission_table`."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from providers.registry import SCHEDULERS, fabrics
from providers.schedulers.kube import KUBE, kube_scheduler
from resources.admission.look_ups import look_ups
from resources.install.modes import Use
from resources.install.permissions import (
    VERBS,
    Permission,
    ServedEndpoints,
    endpoint_permissions,
    installation_permissions,
    permissions,
    without_implied,
)
from resources.install.publication import LeasePlace
from resources.install.webhooks import GRAPH_DEFINITION, WEBHOOKS
from resources.ports.configuration import Configuration, GangMode
from resources.registry import BLUEPRINTS
from resources.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "permissions.md"
BEGIN, END = "<!-- permissions -->\n", "<!-- end -->\n"
BACK_ENDS = {**SCHEDULERS, KUBE: kube_scheduler(GangMode.AUTO)}
CONFIGURATION = Configuration(BACK_ENDS, "default-scheduler", topology=True, fabrics=fabrics(Settings()))


def needed(use: Use) -> Iterator[Permission]:
    """What a use needs if everything is enabled."""
    yield from permissions(BLUEPRINTS, CONFIGURATION, LeasePlace("grove-system"), use)
    yield from installation_permissions(use)
    if use is Use.RUN:
        yield from endpoint_permissions(
            ServedEndpoints(
                "grove-system",
                certificate="grove-webhook-server-cert",
                mutating=tuple(webhook.configuration for webhook in WEBHOOKS if webhook.mutates),
                validating=tuple(webhook.configuration for webhook in WEBHOOKS if not webhook.mutates),
                look_ups=tuple(look_up.kind for look_up in look_ups(CONFIGURATION)),
                checks_callers=True,
                definitions=(GRAPH_DEFINITION,),
            )
        )


def rows(permissions: Iterable[Permission]) -> dict[tuple[str, str, str], str]:
    """Group, resource and scope -> verbs."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for each in permissions:
        scope = "by name" if each.names else "own namespace" if each.namespace else ""
        verbs.setdefault((each.kind.group or "core", each.resource, scope), set()).update(each.verbs)
    return {row: ", ".join(sorted(allowed, key=VERBS.index)) for row, allowed in verbs.items()}


def table() -> str:
    """The table in Markdown."""
    of_use = {use: rows(without_implied(needed(use))) for use in Use}
    lines = ["| group | resource | | run | sync | read |", "|---|---|---|---|---|---|"]
    for row in sorted({row for allowed in of_use.values() for row in allowed}):
        cells = [f"`{row[0]}`", f"`{row[1]}`", row[2], *(of_use[use].get(row, "") for use in Use)]
        lines.append("| " + " | ".join(cells) + " |")
    return "".join(f"{line}\n" for line in lines)


def updated(page: str) -> str:
    """The page with the table."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def test_the_page_has_the_computed_table() -> None:
    assert PAGE.read_text() == updated(PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text()))
