"""Scheduler: places gangs whole or not at all, and pods of no gang one by one."""

from collections.abc import Iterable, Mapping, Sequence

import anyio

from engine import conditions
from engine.errors import ClusterError
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.amounts import PODS, requested
from providers.sandbox.actors.ask import ask_of
from providers.sandbox.actors.body import Body, Key, by_age, conditions_of, is_deleting, is_finished, key_of, labels_of, status_of, uid_of
from providers.sandbox.actors.claimed import asks_for_claims, claims_of
from providers.sandbox.actors.claiming import Claiming, Lacking
from providers.sandbox.actors.gang import Unit, muster, unit_of
from providers.sandbox.actors.moments import written
from providers.sandbox.actors.pool import Pool, Shortage
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.actors.settings import Settings
from resources.base.kinds import NODE, POD, PODGANG

GATHERING = 0.1
"""Seconds in which freed room is gathered before everything that did not fit is tried again."""
PATIENCE = 1.0
"""Seconds that a gang may lack pods before its pods say so: gangs are created one pod after the other."""


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Bind pods that may be scheduled; say of the others what is short."""
    await Scheduler(client, clock, settings).run()


class Scheduler:
    """What the scheduler knows: pods, nodes, gangs, and what waits for room. All of it can be read anew from the API."""

    def __init__(self, client: Client, clock: Clock, settings: Settings) -> None:
        self._client, self._clock, self._settings = client, clock, settings
        self._agenda: Agenda[Unit | None] = Agenda(clock)
        self._pool = Pool()
        self._pods = Reflection(POD, self._saw_pod)
        self._nodes = Reflection(NODE, self._saw_node)
        self._gangs = Reflection(PODGANG, self._saw_gang)
        self._claiming = Claiming(client, self._pool, self._freed, self._saw_claim)
        self._users: dict[Key, dict[Key, None]] = {}
        """Pods that are yet to be placed, by the claims that they need."""
        self._free: dict[Unit, dict[Key, Body]] = {}
        self._parked: set[Unit] = set()
        self._lacking_since: dict[Unit, float] = {}
        self._posting = anyio.CapacityLimiter(16)

    async def run(self) -> None:
        """Schedule, for ever."""
        async with anyio.create_task_group() as tasks:
            followed = (self._pods, self._nodes, self._gangs, *self._claiming.reflections)
            tasks.start_soon(reflect, self._client, self._clock, *followed)
            # Room is given out only once it is known what is taken, and by whom.
            for seen in followed:
                await seen.synced.wait()
            tasks.start_soon(self._agenda.work, self._look)

    def _saw_pod(self, key: Key, old: Body | None, new: Body | None) -> None:
        self._account(old, new)
        free = new is not None and self._is_free(new)
        if old is not None and not (free and new is not None and unit_of(new) == unit_of(old)):
            self._forget(unit_of(old), key)
        if new is not None and free:
            self._free.setdefault(unit_of(new), {})[key] = new
            for claim in claims_of(new):
                self._users.setdefault(claim, {})[key] = None
            # Our own words in its status are no reason to try again; that its claims have been made is one.
            if old is None or old["spec"] != new["spec"] or claims_of(old) != claims_of(new):
                self._agenda.add(unit_of(new))

    def _saw_claim(self, key: Key) -> None:
        """A claim has come, gone, got its devices or lost them: who waits for it is tried again."""
        for pod in list(self._users.get(key, ())):
            live = self._pods.get(*pod)
            if live is None or not self._is_free(live) or key not in claims_of(live):
                del self._users[key][pod]
            else:
                self._agenda.add(unit_of(live))
        if not self._users.get(key):
            self._users.pop(key, None)

    def _freed(self) -> None:
        """There may be room for what is parked."""
        self._agenda.later(None, GATHERING)

    def _account(self, old: Body | None, new: Body | None) -> None:
        """Take what a bound pod takes; give back what one had that is gone, or will never run again."""
        if old is not None and (new is None or uid_of(new) != uid_of(old) or is_finished(new)) and self._pool.remove(uid_of(old)):
            self._agenda.later(None, GATHERING)
        if new is not None and not is_finished(new) and (node := new["spec"].get("nodeName")) and self._pool.where(uid_of(new)) != node:
            self._pool.put(uid_of(new), node, _taken(new))

    def _forget(self, unit: Unit, key: Key) -> None:
        if self._free.get(unit, {}).pop(key, None) and not self._free[unit]:
            del self._free[unit]
            self._lacking_since.pop(unit, None)

    def _saw_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is None or new is None or _offer(old) != _offer(new):
            self._pool.set_node(key[1], new)
            self._agenda.later(None, GATHERING)

    def _saw_gang(self, key: Key, old: Body | None, new: Body | None) -> None:
        unit = Unit(*key, alone=False)
        if unit in self._free:
            self._agenda.add(unit)

    def _is_free(self, pod: Body) -> bool:
        """Whether the pod may be placed, is not yet, and is ours to place."""
        spec, served = pod["spec"], self._settings.schedulers
        ours = not served or spec.get("schedulerName", "default-scheduler") in served
        open_ = not spec.get("nodeName") and not spec.get("schedulingGates") and not is_deleting(pod) and not is_finished(pod)
        return ours and open_ and not self._is_placed(pod)

    def _is_placed(self, pod: Body) -> bool:
        return self._pool.where(uid_of(pod)) != ""

    async def _look(self, unit: Unit | None) -> float | None:
        if unit is None:
            self._unpark()
        elif unit in self._free:
            return await (self._look_alone(unit) if unit.alone else self._look_gang(unit))
        return None

    def _unpark(self) -> None:
        """Room was freed: try again what did not fit, the oldest of the most important first."""
        for unit in sorted(self._parked & self._free.keys(), key=self._rank):
            self._agenda.add(unit)
        self._parked.clear()

    def _rank(self, unit: Unit) -> tuple[int, tuple[str, str, str]]:
        return min((-(pod["spec"].get("priority") or 0), by_age(pod)) for pod in self._free[unit].values())

    async def _look_alone(self, unit: Unit) -> float | None:
        pods = [pod for pod in self._free[unit].values() if self._is_free(pod)]
        if lacking := self._lacks_claims(pods):
            return await self._lack(unit, lacking)
        self._lacking_since.pop(unit, None)
        await self._place_each(unit, pods)
        return None

    async def _look_gang(self, unit: Unit) -> float | None:
        gang = self._gangs.get(unit.namespace, unit.name)
        if gang is None:
            return await self._lack(unit, f"PodGang {unit.namespace}/{unit.name} is not there")
        called = muster(gang, self._pods.objects, self._is_placed, self._is_free)
        if called.missing:
            return await self._lack(unit, f"gang {unit.namespace}/{unit.name} is incomplete: {called.missing}")
        if lacking := self._lacks_claims(called.required):
            return await self._lack(unit, lacking)
        self._lacking_since.pop(unit, None)
        if await self._place_all(unit, called.required):
            await self._place_each(unit, [pod for pod in called.extra if self._is_free(pod)])
        return None

    async def _lack(self, unit: Unit, message: str) -> float | None:
        """Nothing to place yet. Say so once it has lasted."""
        now = self._clock.monotonic()
        left = self._lacking_since.setdefault(unit, now) + PATIENCE - now
        if left > 0:
            return left
        await self._say(self._free[unit].values(), message)
        return None

    def _lacks_claims(self, pods: Iterable[Body]) -> str:
        """What of their claims the pods still lack."""
        try:
            for pod in pods:
                self._claiming.check(pod)
        except Lacking as lacking:
            return str(lacking)
        return ""

    async def _place_all(self, unit: Unit, pods: Sequence[Body]) -> bool:
        """Bind all of the pods, or none and say why. Whether they have their places."""
        found = self._placement(unit, pods)
        if isinstance(found, str):
            self._parked.add(unit)
            await self._say(pods, found)
            await self._claiming.let_go(pods)
            return False
        await self._bind(pods, found)
        return True

    async def _place_each(self, unit: Unit, pods: Sequence[Body]) -> None:
        """Bind those of the pods that find a place; say of each other one why it does not."""
        found = [(pod, self._placement(unit, [pod])) for pod in pods]
        places = {uid: node for _, places in found if not isinstance(places, str) for uid, node in places.items()}
        if len(places) < len(pods):
            self._parked.add(unit)
        await self._bind([pod for pod in pods if uid_of(pod) in places], places)
        for pod, why in found:
            if isinstance(why, str):
                await self._say([pod], why)
                await self._claiming.let_go([pod])

    def _placement(self, unit: Unit, pods: Sequence[Body]) -> Mapping[str, str] | str:
        """A node for each of the pods, by uid, taken from now on; or why there is none."""
        try:
            found = self._pool.place(self._claiming.asks([(pod, ask_of(pod)) for pod in pods]))
        except ValueError as error:
            return f"the resources of the pod cannot be read: {error}"
        except Lacking as lacking:
            return str(lacking)
        if not isinstance(found, Shortage):
            self._claiming.take(pods, _taken)
            return found
        fitting = f" {found.placed} of {len(pods)} pods of gang {unit.namespace}/{unit.name} would fit." if len(pods) > 1 else ""
        return f"{found}{fitting}"

    async def _bind(self, pods: Sequence[Body], nodes: Mapping[str, str]) -> None:
        """Bind all at once, when all have their devices. Raises what went wrong last; whoever was not bound gives its place back."""
        errors: list[ClusterError] = []
        try:
            for pod in pods:
                if asks_for_claims(pod):
                    await self._claiming.allocate(pod, nodes[uid_of(pod)])
        except ClusterError:
            for pod in pods:
                self._give_back(pod)
            raise

        async def bind(pod: Body) -> None:
            namespace, name = key_of(pod)
            try:
                async with self._posting:
                    await self._client.create(POD, namespace, _binding(pod, nodes[uid_of(pod)]), name=name, subresource="binding")
            except ClusterError as error:
                errors.append(error)
                self._give_back(pod)

        async with anyio.create_task_group() as tasks:
            for pod in pods:
                tasks.start_soon(bind, pod)
        if errors:
            raise errors[-1]

    def _give_back(self, pod: Body) -> None:
        """The pod was not bound, unless the watch knows better: then only the answer was lost, or somebody else was faster."""
        seen = self._pods.get(*key_of(pod))
        if seen is None or not seen["spec"].get("nodeName"):
            self._claiming.give_back(pod)
        if (seen is None or not seen["spec"].get("nodeName")) and self._pool.remove(uid_of(pod)):
            self._agenda.later(None, GATHERING)

    async def _say(self, pods: Iterable[Body], message: str) -> None:
        """Tell each of the pods why it is not scheduled, unless it says so already."""
        for pod in list(pods):
            old = conditions.find(conditions_of(pod), "PodScheduled") or {}
            said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            if any(old.get(name) != value for name, value in said.items()):
                since = old.get("lastTransitionTime") if old.get("status") == "False" else None
                said["lastTransitionTime"] = since or written(self._clock.now())
                patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [said]}}
                self._pods.assume(await self._client.patch(POD, *key_of(pod), patch, how="strategic", subresource="status"))


def _binding(pod: Body, node: str) -> Body:
    about = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"], "uid": uid_of(pod)}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": about, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}


def _offer(node: Body) -> tuple[object, ...]:
    """What of a node placement depends on; heartbeats are not part of it."""
    ready = conditions.find(conditions_of(node), "Ready") or {}
    return node.get("spec"), labels_of(node), status_of(node).get("allocatable"), ready.get("status")


def _taken(pod: Body) -> Mapping[str, int]:
    """What a bound pod takes; at least its place, where its quantities cannot be read."""
    try:
        return requested(pod["spec"])
    except ValueError:
        return {PODS: 1000}
