"""`engine manifests policies`: the admission rules that an API server evaluates itself, for clusters without webhooks."""

from msgspec.structs import replace

from enginectl.actions.crds import VERSION, yaml_stream
from enginectl.base import terminal
from enginectl.base.errors import UsageError
from enginectl.base.exit_codes import Exit
from enginectl.wiring.configuration import Wiring, protection
from resources.admission.managed_rules import Protection
from resources.admission_policies.objects import policies, unstated_rules
from resources.schema.formats import label_faults, subdomain_faults


def print_policies(wiring: Wiring, service_account: str, *, mutating: bool, as_json: bool) -> Exit:
    """Write the policies to stdout, as one JSON document or as a YAML stream that begins with what they do not state.

    Raises `UsageError` if managed objects are protected and the engine's own account is not known.
    """
    objects = [dict(body) for body in policies(wiring.configuration, _protection(wiring, service_account), mutating=mutating)]
    unstated = unstated_rules(wiring.configuration, mutating=mutating)
    if as_json:
        terminal.print_json({"version": VERSION, "objects": objects, "notStated": list(unstated)})
    else:
        comments = ["# Not stated by these policies, because CEL cannot express it:", *(f"# - {rule}" for rule in unstated)]
        terminal.print_text("\n".join(comments) + "\n" + yaml_stream(objects))
    return Exit.DONE


def _protection(wiring: Wiring, service_account: str) -> Protection:
    protected = protection(wiring.settings, wiring.configuration)
    if service_account:
        namespace, _, name = service_account.partition("/")
        if label_faults(namespace) or subdomain_faults(name):
            raise UsageError(f"--service-account {service_account}: must be NAMESPACE/NAME")
        protected = replace(protected, operator=f"system:serviceaccount:{namespace}:{name}")
    if protected.enabled and not protected.operator:
        raise UsageError("authorizer.enabled is true: name the engine's own service account with --service-account NAMESPACE/NAME")
    return protected
