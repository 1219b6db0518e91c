"""Preview: what a sync would observe and plan first."""

from engine.intent import NOTHING, Intent
from engine.runtime.collector import tune_gc
from engine.runtime.memory import Memory
from engine.runtime.passes import Engine, Pass, observe_and_plan


async def preview(engine: Engine, intent: Intent = NOTHING) -> Pass:
    """What a `sync` would observe and plan first. Writes nothing.

    The names of all objects that it would create are looked up: one that exists has lost its labels, which are restored, or is foreign.
    `sync` learns this when its create is refused. Raises `Unauthorized`, and `Unreachable` when nothing can be listed.
    """
    tune_gc()
    memory = Memory()
    current = await observe_and_plan(engine, memory, intent)
    unread = await memory.foreign.look_up(engine.provider, current.planned.plans)
    if engine.log is not None:
        for kind, error in sorted(unread.items()):
            engine.log.warning("names not read", kind=kind, error=error)
    return await observe_and_plan(engine, memory, intent) if memory.foreign.known else current
