"""Trust: who may touch managed objects, from the configuration and from the pod that we run in."""

import os
from typing import Final

from providers.kubernetes.kubeconfig import SERVICE_ACCOUNT
from resources.admission.managed_rules import Protection
from resources.settings import Settings

ACCOUNT_VARIABLE: Final = "GROVE_OPERATOR_SERVICE_ACCOUNT_NAME"


def protection(settings: Settings) -> Protection:
    """Whether managed objects are protected, and from whom not: the engine's own service account, where both halves of it are known."""
    account, namespace = os.environ.get(ACCOUNT_VARIABLE, "").strip(), own_namespace()
    operator = f"system:serviceaccount:{namespace}:{account}" if account and namespace else ""
    guard = settings.authorizer
    return Protection(guard.enabled, operator, frozenset(guard.exempt_service_account_user_names))


def own_namespace() -> str:
    """The namespace of the pod that we run in; empty where we run in none."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
