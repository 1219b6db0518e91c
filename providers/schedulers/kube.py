"""Kube: the default scheduler of Kubernetes. It does not schedule gangs: only scheduling gates and the start order keep a gang together."""

from resources.ports.scheduler import Scheduler


class KubeScheduler(Scheduler):
    """The back end `default-scheduler`."""

    name = "default-scheduler"
    instead_of_gangs = "install KAI, install Volcano (and name it in scheduler.profiles and schedulerName), or accept that"
