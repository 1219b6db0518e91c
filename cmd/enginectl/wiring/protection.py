"""Protection: who may change managed objects, according to the configuration and the pod that the engine runs in."""

import os
from typing import Final

from providers.kubernetes.kubeconfig import SERVICE_ACCOUNT
from resources.admission.managed_rules import Protection
from resources.settings import Settings

ACCOUNT_VARIABLE: Final = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"
NAMESPACE_VARIABLE: Final = "POD_NAMESPACE"
"""The variable with the namespace of the pod, where it has no mounted ServiceAccount."""


def protection(settings: Settings) -> Protection:
    """Whether managed objects are protected, and which users are exempt.

    The engine's own service account is exempt if its name (from the environment) and its namespace (from the pod) are known.
    """
    account, namespace = os.environ.get(ACCOUNT_VARIABLE, "").strip(), pod_namespace()
    operator = f"system:serviceaccount:{namespace}:{account}" if account and namespace else ""
    authorizer = settings.authorizer
    return Protection(authorizer.enabled, operator, frozenset(authorizer.exempt_service_account_user_names))


def pod_namespace() -> str:
    """The namespace of the pod that this process runs in; empty outside a pod."""
    if named := os.environ.get(NAMESPACE_VARIABLE, "").strip():
        return named
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
