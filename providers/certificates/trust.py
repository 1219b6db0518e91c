"""Trust: which authorities the webhook configurations trust, and whether they have done so for long enough."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from cryptography import x509

from providers.certificates.bundles import Bundles
from providers.certificates.judging import is_signed_by
from providers.certificates.making import Pair

SETTLED: Final = 10.0
"""Seconds after which every API server calls webhooks with a configuration that we have read: each keeps a copy that it watches."""


class Trust:
    """What one replica has read of the webhook configurations. Seconds are those of its monotonic clock."""

    def __init__(self) -> None:
        self._bundles: Sequence[Bundles] | None = None
        self._since: Mapping[x509.Certificate, float] = {}
        """When this replica has first read that every configuration trusts an authority, without a gap since."""

    def observe(self, bundles: Sequence[Bundles] | None, now: float) -> None:
        """Note what was read; None if something could not be read, so that nothing is known."""
        self._bundles = bundles
        everywhere = reduce(frozenset.intersection, map(frozenset, (each.trusted() for each in bundles or ()))) if bundles else frozenset()
        self._since = {authority: self._since.get(authority, now) for authority in everywhere}

    def is_settled(self, authority: x509.Certificate, now: float) -> bool:
        """Whether every API server trusts the authority. True if there is no configuration."""
        if self._bundles is None:
            return False
        return not self._bundles or now - self._since.get(authority, now) >= SETTLED

    def refuses(self, pair: Pair) -> bool:
        """Whether some configuration is known not to trust the pair."""
        return bool(self._bundles) and not any(is_signed_by(pair.certificate, authority) for authority in self._since)
