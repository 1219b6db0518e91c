"""Registry: the plug-ins that a configuration can name. A new one is a file and a line here."""

from collections.abc import Mapping

from providers.schedulers.kube import KubeScheduler
from resources.ports import Scheduler

SCHEDULERS: Mapping[str, Scheduler] = {scheduler.name: scheduler for scheduler in (KubeScheduler(),)}
