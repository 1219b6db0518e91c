"""Ray: vLLM's nodes as one Ray cluster: the leader starts its head and then the user's command; workers join it and start nothing else."""

from typing import Any, Final

from engine.resource import Body
from resources.base.fields import mappings
from resources.dynamo.backends.addresses import in_shell
from resources.dynamo.backends.command import command_of, with_joined_arguments
from resources.dynamo.backends.port import Placement, RewrittenContainer, without_probes
from resources.dynamo.backends.script import has_commands, has_operators
from resources.dynamo.backends.shell import SHELL, quoted
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import Role

PORT: Final = 6379
HEAD: Final = f"ray start --head --port={PORT}"


def in_ray(container: Body, placement: Placement) -> RewrittenContainer:
    """The container of Ray's head, or of one of its workers, with a warning if its image has no Ray."""
    changed = _head(container, placement) if placement.role is Role.LEADER else RewrittenContainer(_worker(container, placement))
    if not placement.without_ray or placement.role is not Role.LEADER:
        return changed
    return changed.with_warnings(placement.warning(f"the image {placement.without_ray} has no Ray, which joins its nodes"))


def _head(container: Body, placement: Placement) -> RewrittenContainer:
    container = with_joined_arguments(container)
    command = command_of(container)
    if not command.is_shell and command.words:
        line = quoted(command.words, mappings(container.get("env")))
        changed = {**container, "command": list(SHELL), "args": [f"{HEAD} && exec {line.text}"], "env": list(line.envs)}
        return RewrittenContainer(changed)
    if has_commands(command.text):
        return RewrittenContainer(command.with_script(_behind_head(command.text, placement)).applied_to(container))
    reason = f"its command stays as it is, because its shell has no script before which `{HEAD}` could be put"
    return RewrittenContainer(container, warnings=(placement.warning(reason),))


def _behind_head(script: str, placement: Placement) -> str:
    """The script, no command of which runs unless Ray's head has started. Before the sixth form of pods, of a script of several commands
    this holds for the first ones only: `&&` ends at the next `;`, `&`, `||` or line."""
    if placement.form.includes(PodForm.SIXTH) and has_operators(script):
        return f"{HEAD} || exit\n{script}"
    return f"{HEAD} && {script}"


def _worker(container: Body, placement: Placement) -> dict[str, Any]:
    leader = placement.addresses.leader(in_shell)
    return {**without_probes(container), "command": list(SHELL), "args": [f"ray start --address={leader}:{PORT} --block"]}
