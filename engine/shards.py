"""Shards: which shard a namespace belongs to, and which shards each replica of `engine run` holds.

Namespaces are divided by rendezvous hashing: each shard has a weight for the namespace, and the highest weight wins. The weights are a
contract between processes (`docs/shards.md`): all that write to one cluster must compute the same ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from hashlib import sha256

from msgspec import Struct

MAX_SHARDS = 100
"""The largest number of shards."""


class Shard(Struct, frozen=True):
    """One of `count` shards, numbered from 0. Cluster-scoped objects belong to the shard of the empty namespace."""

    index: int
    count: int

    def contains(self, namespace: str) -> bool:
        """Whether the namespace belongs to this shard."""
        return shard_of(namespace, self.count) == self.index

    def __str__(self) -> str:
        return f"shard {self.index} of {self.count}"


@lru_cache(maxsize=65536)
def shard_of(namespace: str, count: int) -> int:
    """The index of the shard that the namespace belongs to, among `count` shards: the one with the highest weight, the first of equals."""
    return max(range(count), key=lambda shard: weight(str(shard), namespace))


def weight(shard: str, name: str) -> int:
    """The first eight bytes of the SHA-256 digest of `shard/name` in UTF-8, as an unsigned big-endian number."""
    return int.from_bytes(sha256(f"{shard}/{name}".encode()).digest()[:8], "big")


def shards_of(namespaces: Sequence[str], count: int, *, cluster_scoped: bool) -> tuple[int, ...]:
    """The shards of these namespaces (none: all shards), in ascending order; with `cluster_scoped` also that of cluster-scoped objects."""
    if not namespaces:
        return tuple(range(count))
    names = (*namespaces, "") if cluster_scoped else namespaces
    return tuple(sorted({shard_of(namespace, count) for namespace in names}))


class Division(Struct, frozen=True):
    """Which shards a replica holds, as that replica sees it."""

    holders: Sequence[str]
    """The holder of each shard; empty for a shard that is free. A holder need not be a replica: `engine sync` holds shards too."""
    replicas: Set[str]
    """The replicas that are alive."""

    @property
    def free(self) -> tuple[int, ...]:
        """The shards that no replica holds."""
        return tuple(shard for shard, holder in enumerate(self.holders) if not holder)

    @property
    def held(self) -> Mapping[str, int]:
        """Replica -> how many shards it holds."""
        counts = Counter(self.holders)
        return {replica: counts[replica] for replica in self.replicas}

    @property
    def fewest(self) -> int:
        """How many shards each replica holds at least once the shards are divided evenly."""
        return len(self.holders) // max(1, len(self.replicas))

    @property
    def most(self) -> int:
        """How many shards each replica holds at most."""
        return -(-len(self.holders) // max(1, len(self.replicas)))


def shards_to_take(division: Division, replica: str) -> tuple[int, ...]:
    """The free shards that the replica should take now, those first that others would take last.

    Up to its even share at once. One more only if there are more free shards than the other replicas still lack.
    """
    own = division.held.get(replica, 0)
    number = max(0, division.fewest - own)
    if not number and own < division.most and len(division.free) > _lacking(division, replica):
        number = 1
    return tuple(sorted(division.free, key=lambda shard: -weight(replica, str(shard)))[:number])


def shards_to_give_back(division: Division, replica: str) -> tuple[int, ...]:
    """The shards of the replica that others should have: all above the largest share.

    Of the replicas with the largest share as many give back one as shards are lacking elsewhere, those first that hold most.
    """
    own = [shard for shard, holder in enumerate(division.holders) if holder == replica]
    number = max(0, len(own) - division.most)
    if not number and len(own) > division.fewest:
        givers = sorted((-held, other) for other, held in division.held.items() if held > division.fewest)
        lacking = _lacking(division, replica) - len(division.free)
        number = 1 if givers.index((-len(own), replica)) < lacking else 0
    return tuple(sorted(own, key=lambda shard: weight(replica, str(shard)))[:number])


def _lacking(division: Division, replica: str) -> int:
    """How many shards all other replicas together need to have their even shares."""
    return sum(max(0, division.fewest - held) for other, held in division.held.items() if other != replica)
