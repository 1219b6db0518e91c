"""Rotation: which step brings the certificates in the Secret forward, so that no client that trusts the published authorities is refused.

A new authority is first only added: to the Secret, and with it to every webhook configuration. Its first server certificate is signed once
every configuration has it. The key of the old authority is gone from then on, so everything it has signed expires within the life of a
server certificate; until then the old authority stays trusted, and so does a replica that has not noticed anything yet.
Any replica may take any step, and each looks at what is there now: a step that another replica has taken is not taken again.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import Enum
from typing import Final

from cryptography import x509
from msgspec import Struct
from msgspec.structs import replace

from providers.certificates.judging import DAY, is_due, is_ours, is_signed_by, missing_names, time_fault
from providers.certificates.making import SERVER_LIFE, Authority, Pair, made_at, new_authority, new_pair

MOST_AUTHORITIES: Final = 16
"""How many authorities are kept, the newest first. In a rotation there are two, and one more each time the Secret is deleted."""

Trusts = Callable[[x509.Certificate], bool]
"""Whether every webhook configuration trusts an authority."""


class Stored(Struct, frozen=True):
    """What the Secret contains that can be used."""

    authorities: tuple[x509.Certificate, ...] = ()
    """The authorities that clients should trust, the one that signs first."""
    signing: Authority | None = None
    """The authority that signs; None if there is none of ours, or its key is missing."""
    pair: Pair | None = None
    """The server's certificate; None if there is none, or the key does not fit."""


class Action(Enum):
    """What a step does."""

    NOTHING = ""
    ADD_AUTHORITY = "a certificate authority was made"
    SIGN = "a server certificate was signed"
    FORGET = "old certificate authorities were removed"


class RotationStep(Struct, frozen=True):
    """What to do, and why."""

    action: Action
    reason: str = ""


NOTHING: Final = RotationStep(Action.NOTHING)


def next_step(stored: Stored, names: Sequence[str], trusts: Trusts, now: datetime) -> RotationStep:
    """The next step; `NOTHING` while everything is as it should be, or while a new authority is not yet trusted everywhere."""
    if fault := authority_fault(stored.signing, now):
        return RotationStep(Action.ADD_AUTHORITY, fault)
    assert stored.signing is not None
    signing = stored.signing.certificate
    if fault := pair_fault(stored, names, now):
        # Before an authority that is only due is replaced: what it signs is trusted at once.
        return RotationStep(Action.SIGN, fault)
    assert stored.pair is not None
    if is_due(signing, now):
        return RotationStep(Action.ADD_AUTHORITY, f"it expires on {signing.not_valid_after_utc:{DAY}}")
    is_of_signing = is_signed_by(stored.pair.certificate, signing)
    if not is_of_signing and trusts(signing):
        return RotationStep(Action.SIGN, "the new certificate authority is trusted by every webhook configuration")
    if is_of_signing and is_due(stored.pair.certificate, now):
        return RotationStep(Action.SIGN, f"it expires on {stored.pair.expires_at:{DAY}}")
    if is_of_signing and len(current_authorities(stored, now)) < len(stored.authorities):
        return RotationStep(Action.FORGET, "everything that they have signed has expired")
    return NOTHING


def after(step: RotationStep, stored: Stored, trusted: Iterable[x509.Certificate], names: Sequence[str], now: datetime) -> Stored:
    """What the Secret should contain after the step. `trusted`: authorities that clients may rely on although the Secret lacks them."""
    match step.action:
        case Action.ADD_AUTHORITY:
            signing = new_authority(now)
            older = [each for each in dict.fromkeys((*stored.authorities, *trusted)) if not time_fault(each, now)]
            newest_first = sorted(older, key=lambda each: each.not_valid_before_utc, reverse=True)
            added = replace(stored, authorities=(signing.certificate, *newest_first[: MOST_AUTHORITIES - 1]), signing=signing)
            return after(RotationStep(Action.SIGN), added, (), names, now) if pair_fault(added, names, now) else added
        case Action.SIGN:
            assert stored.signing is not None
            return replace(stored, pair=new_pair(stored.signing, names, now))
        case Action.FORGET:
            return replace(stored, authorities=current_authorities(stored, now))
    return stored


def authority_fault(signing: Authority | None, now: datetime) -> str:
    """Why the authority cannot sign; empty if it can."""
    return "there is none of ours with its key" if signing is None else time_fault(signing.certificate, now)


def pair_fault(stored: Stored, names: Sequence[str], now: datetime) -> str:
    """Why the server certificate in the Secret cannot be served; empty if it can."""
    if stored.pair is None:
        return "there is none with its key"
    if fault := time_fault(stored.pair.certificate, now):
        return fault
    if missing := missing_names(stored.pair.certificate, names):
        return f"it is not valid for {missing[0]}"
    issuer = issuer_of(stored.pair, stored.authorities)
    if issuer is None:
        return "no certificate authority in the Secret has signed it"
    return "its certificate authority is not valid any more" if time_fault(issuer, now) else ""


def issuer_of(pair: Pair, authorities: Iterable[x509.Certificate]) -> x509.Certificate | None:
    """The authority that has signed the pair's certificate; None if it is not among these."""
    return next((authority for authority in authorities if is_signed_by(pair.certificate, authority)), None)


def current_authorities(stored: Stored, now: datetime) -> tuple[x509.Certificate, ...]:
    """The authorities without those that are not needed any more: expired, or everything that they have signed has expired."""
    return tuple(each for each in stored.authorities if is_needed(each, stored, now))


def published_authorities(stored: Stored, present: Iterable[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    """What a webhook configuration should trust that trusts `present` now: the authorities in the Secret, and older ones of ours.

    The Secret lacks the latter if it was replaced; a replica may still serve what they have signed.
    """
    older = {each for each in present if is_ours(each) and is_needed(each, stored, now)} - set(stored.authorities)
    newest_first = sorted(older, key=lambda each: (each.not_valid_before_utc, each.serial_number), reverse=True)
    return (*stored.authorities, *newest_first[:MOST_AUTHORITIES])


def is_needed(authority: x509.Certificate, stored: Stored, now: datetime) -> bool:
    """Whether something may be valid that the authority has signed."""
    if stored.signing is None or authority == stored.signing.certificate:
        return True
    return not time_fault(authority, now) and now < made_at(stored.signing.certificate) + SERVER_LIFE
