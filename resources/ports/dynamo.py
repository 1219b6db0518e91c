"""DynamoSettings: the operator's choices for DynamoGraphDeployments."""

from msgspec import Struct

ONLY = "part"
"""The key of the only part of a graph."""
KAI_SCHEDULER = "kai-scheduler"
"""The name of KAI, as pods and the profiles of the configuration give it."""
SSH_SECRET = "mpirun-ssh-key-{component}"
"""The default name of the Secret with the SSH key pair of a TensorRT-LLM service; `{component}` is `<graph>-<service>` in lower case."""


class DynamoSettings(Struct, frozen=True):
    """What pods and objects of graphs depend on besides the graph."""

    ssh_secret: str = SSH_SECRET
    """The name of the Secret with the SSH key pair of a multinode TensorRT-LLM service, in the graph's namespace."""
    create_ssh_secret: bool = False
    """Whether that Secret is created if it is missing. Otherwise the service waits for it."""
    allow_replace: bool = False
    """Whether a PodCliqueSet is deleted and created anew when a graph changes what the API does not allow to change."""
    termination_delay: str = "15m"
    """`terminationDelay` of the PodCliqueSet; empty leaves it out."""
    nats_address: str = ""
    """`NATS_SERVER` of every container; empty leaves it out, like the following ones."""
    etcd_address: str = ""
    model_express_url: str = ""
    prometheus_endpoint: str = ""
    ingress_class: str = ""
    """The Ingress class of services that name none; without any class no Ingress is created."""
    ingress_host_suffix: str = "local"
    """What follows the host of an Ingress, after a dot, unless the service names its own."""

    def ssh_secret_of(self, component: str) -> str:
        """The name of the Secret of one component."""
        return self.ssh_secret.replace("{component}", component)
