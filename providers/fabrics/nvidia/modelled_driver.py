"""Modelled driver: what NVIDIA's DRA driver does with ComputeDomains, as forecasts assume."""

from collections.abc import Sequence

from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import Live
from providers.fabrics.nvidia.domain_facts import template_name
from providers.fabrics.nvidia.names import CHANNEL_CLASS, COMPUTE_DOMAIN, DOMAIN_LABEL, DRIVER, DRIVER_FINALIZER, TARGET_LABEL, WORKLOAD
from resources.base import kinds
from resources.base.fields import mapping
from resources.ports.fabric import ModelledDriver


class NvidiaDriver(ModelledDriver):
    """The driver in one forecast: it gives each domain its finalizer and a claim template, and removes both when the domain is deleted."""

    def answer(self, store: ForecastStore, changed: Sequence[ResourceId], gone: Sequence[str]) -> bool:
        """Reconcile the domains that have changed."""
        domains = [live for id in changed if _is_domain(id) and (live := store.find(id)) is not None]
        return any([_removed(store, domain) if domain.deleting_since else _served(store, domain) for domain in domains])

    def holds(self, live: Live) -> bool:
        """Whether it is a domain or a template of the driver."""
        return _is_domain(live.id) or DOMAIN_LABEL in live.labels


def _is_domain(id: ResourceId) -> bool:
    return (id.group, id.kind) == (COMPUTE_DOMAIN.group, COMPUTE_DOMAIN.name)


def _template_id(domain: Live) -> ResourceId:
    return kinds.RESOURCE_CLAIM_TEMPLATE.id(domain.id.namespace, template_name(domain, domain.id.name))


def _served(store: ForecastStore, domain: Live) -> bool:
    """Give a domain the driver's finalizer and its template. Returns whether one of them was missing."""
    finalizers = domain.body["metadata"].get("finalizers") or []
    is_new = DRIVER_FINALIZER not in finalizers
    if is_new:
        store.patch(domain.id, {"metadata": {"finalizers": [*finalizers, DRIVER_FINALIZER]}})
    if (id := _template_id(domain)) in store.lives:
        return is_new
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": domain.uid}
    labels = {DOMAIN_LABEL: domain.uid, TARGET_LABEL: WORKLOAD}
    devices = {
        "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
        "config": [{"opaque": {"driver": DRIVER, "parameters": parameters}}],
    }
    store.create(
        {
            "apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version,
            "kind": kinds.RESOURCE_CLAIM_TEMPLATE.name,
            "metadata": {"name": id.name, "namespace": id.namespace, "labels": labels, "finalizers": [DRIVER_FINALIZER]},
            "spec": {"spec": {"devices": devices}},
        }
    )
    return True


def _removed(store: ForecastStore, domain: Live) -> bool:
    """Remove the template of a deleted domain, then the driver's finalizer. Returns whether there was one of them."""
    template = store.find(_template_id(domain))
    is_ours = template is not None and mapping(template.labels).get(DOMAIN_LABEL) == domain.uid
    if is_ours and template is not None:
        store.remove(template.id)
    finalizers = domain.body["metadata"].get("finalizers") or []
    if DRIVER_FINALIZER in finalizers:
        store.patch(domain.id, {"metadata": {"finalizers": [each for each in finalizers if each != DRIVER_FINALIZER]}})
        return True
    return is_ours
