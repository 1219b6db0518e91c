"""Desired body: the manifest of a set that holds now, whether it is stored or proposed."""

from engine.observed import Observed
from engine.paths import overlay
from engine.resource import Body


def desired_body(observed: Observed) -> Body:
    """The stored set; if there is a proposal, the proposal with its metadata laid on that of the stored set.

    So annotations that a proposal does not mention stay, e.g. one that admission has added.
    """
    body = observed.root.body
    if observed.proposal is None:
        return body
    return {**observed.proposal, "metadata": overlay(body["metadata"], observed.proposal.get("metadata") or {})}
