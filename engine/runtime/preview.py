"""Preview: what a sync would observe and plan first."""

from engine.intent import NOTHING, Intent
from engine.runtime.collector import tune_gc
from engine.runtime.memory import Memory
from engine.runtime.passes import Engine, Pass, observe_and_plan


async def preview(engine: Engine, intent: Intent = NOTHING) -> Pass:
    """What a `sync` would observe and plan first: the same pass. Writes nothing.

    Raises `Unauthorized`, and `Unreachable` when nothing can be listed.
    """
    tune_gc()
    return await observe_and_plan(engine, Memory(), intent)
