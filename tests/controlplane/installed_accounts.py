"""Installed accounts: ServiceAccounts with exactly what `engine manifests rbac` prints for a configuration file."""

from collections.abc import Mapping
from typing import Any

from engine.runtime.clock import SystemClock
from enginectl.actions.manifests import account_permissions
from enginectl.base.options import Options
from enginectl.wiring.configuration import Wiring, configuration_of
from resources.install.modes import Use
from resources.install.roles import Account
from resources.settings import valid_settings
from tests.controlplane.accounts import grant
from tests.controlplane.cluster import SYSTEM, ControlPlane


def install_account(plane: ControlPlane, name: str, configuration: Mapping[str, Any], *, shards: int = 1) -> Account:
    """Create the account of `engine run` under the configuration of that file, and leave its kubeconfig under its name.

    The namespace of its Lease must exist.
    """
    account, settings = Account(SYSTEM, name), valid_settings(configuration)
    wiring = Wiring(Options(), settings, configuration_of(settings), SystemClock())
    grant(plane, account_permissions(wiring, account, Use.RUN, shards=shards), account, name)
    return account
