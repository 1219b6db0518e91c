"""Pod placement: the rules for affinity, selectors, tolerations, spreading and DNS."""

import re
from collections.abc import Iterator
from typing import Final

from resources.schema.formats import qualified_faults, subdomain_faults, value_faults
from resources.schema.issues import Issue, Path
from resources.schema.pod_checks import Fields, duplicate, entries, forbidden, invalid, missing, part, size, text, texts

FIELD_KEYS: Final = ("metadata.name",)
LONGEST_SEARCHES: Final = 2048
"""The largest number of characters of all search paths together, blanks between them included."""
DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
LONGEST_HOSTNAME: Final = 64


def label_requirement(fields: Fields, path: Path) -> Iterator[Issue]:
    """An operator has the values that it needs."""
    operator, count = fields.get("operator"), size(fields, "values")
    if operator in ("In", "NotIn") and not count:
        yield missing((*path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and count:
        yield forbidden((*path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt") and count != 1:
        yield missing((*path, "values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")


def node_term(fields: Fields, path: Path) -> Iterator[Issue]:
    """The rules for the expressions of a node selector term: about labels, and about fields of nodes."""
    for number, expression in entries(fields, "matchExpressions"):
        at = (*path, "matchExpressions", number)
        key = text(expression, "key")
        yield from (invalid((*at, "key"), key, message) for message in qualified_faults(key))
        yield from label_requirement(expression, at)
    for number, expression in entries(fields, "matchFields"):
        yield from _field_requirement(expression, (*path, "matchFields", number))


def _field_requirement(expression: Fields, path: Path) -> Iterator[Issue]:
    if expression.get("operator") not in ("In", "NotIn"):
        yield invalid((*path, "operator"), expression.get("operator"), "not a valid selector operator")
    elif size(expression, "values") != 1:
        yield missing((*path, "values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
    if expression.get("key") not in FIELD_KEYS:
        yield invalid((*path, "key"), expression.get("key"), "not a valid field selector key")
        return
    for number, value in texts(expression, "values"):
        yield from (invalid((*path, "values", number), value, message) for message in subdomain_faults(value))


def node_selector(fields: Fields, path: Path) -> Iterator[Issue]:
    """Required terms have label values that labels can have; preferred ones may have others."""
    for number, term in entries(fields, "nodeSelectorTerms"):
        for index, expression in entries(term, "matchExpressions"):
            at = (*path, "nodeSelectorTerms", number, "matchExpressions", index, "values")
            for place, value in texts(expression, "values"):
                yield from (invalid((*at, place), value, message) for message in value_faults(value))


def pod_term(fields: Fields, path: Path) -> Iterator[Issue]:
    """Keys of labels are compared once: in the selector, among the keys that match, or among those that differ."""
    yield from _label_keys(fields, path, ("matchLabelKeys", "mismatchLabelKeys"))
    others = {key for _, key in texts(fields, "mismatchLabelKeys")}
    for number, key in texts(fields, "matchLabelKeys"):
        if key in others:
            yield invalid((*path, "matchLabelKeys", number), key, "exists in both matchLabelKeys and mismatchLabelKeys")


def _label_keys(fields: Fields, path: Path, names: tuple[str, ...]) -> Iterator[Issue]:
    """Keys need a selector to be added to, and are not in it already, nor twice."""
    selector = part(fields, "labelSelector")
    expressions = {text(expression, "key") for _, expression in entries(selector, "matchExpressions")}
    for name in names:
        if isinstance(fields.get(name), list | tuple) and size(fields, name) and fields.get("labelSelector") is None:
            yield forbidden((*path, name), "must not be specified when labelSelector is not set")
        selected = {*expressions, *part(selector, "matchLabels")}
        for number, key in texts(fields, name):
            if key in selected:
                yield invalid((*path, name, number), key, f"exists in both {name} and labelSelector")
            if name == "matchLabelKeys":
                selected.add(key)


def spread_constraint(fields: Fields, path: Path) -> Iterator[Issue]:
    """A number of domains only forbids; keys as in a pod affinity term."""
    if fields.get("minDomains") is not None and fields.get("whenUnsatisfiable") not in (None, "DoNotSchedule"):
        message = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {text(fields, 'whenUnsatisfiable')}"
        yield invalid((*path, "minDomains"), fields["minDomains"], message)
    yield from _label_keys(fields, path, ("matchLabelKeys",))


def toleration(fields: Fields, path: Path) -> Iterator[Issue]:
    """Key, operator, value and effect fit together."""
    operator, value = text(fields, "operator"), text(fields, "value")
    if not text(fields, "key") and operator != "Exists":
        message = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid((*path, "operator"), operator, message)
    if fields.get("tolerationSeconds") is not None and fields.get("effect") != "NoExecute":
        yield invalid((*path, "effect"), text(fields, "effect"), "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        yield from (invalid((*path, "value"), value, message) for message in value_faults(value))
    elif operator == "Exists" and value:
        yield invalid((*path, "value"), value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Gt", "Lt") and not DECIMAL.fullmatch(value):
        yield invalid((*path, "value"), value, "must be a decimal integer")


def spreading(spec: Fields, path: Path) -> Iterator[Issue]:
    """One constraint for each topology key and reaction."""
    earlier: set[tuple[str, str]] = set()
    for number, constraint in entries(spec, "topologySpreadConstraints"):
        key = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))
        if key in earlier:
            yield duplicate((*path, "topologySpreadConstraints", number), f"{{{key[0]}, {key[1]}}}")
        earlier.add(key)


def naming(spec: Fields, path: Path) -> Iterator[Issue]:
    """What a pod calls itself, and whom it asks for names."""
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None" and config is None:
        yield missing((*path, "dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None")
    elif spec.get("dnsPolicy") == "None" and not size(part(spec, "dnsConfig"), "nameservers"):
        message = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield missing((*path, "dnsConfig", "nameservers"), message)
    searches = part(spec, "dnsConfig").get("searches")
    if isinstance(searches, list | tuple) and sum(len(str(each)) + 1 for each in searches) - 1 > LONGEST_SEARCHES:
        message = f"must not have more than {LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield invalid((*path, "dnsConfig", "searches"), searches, message)
    if spec.get("hostnameOverride") is not None:
        for field in ("setHostnameAsFQDN", "hostNetwork"):
            if spec.get(field) is True:
                yield forbidden((*path, "hostnameOverride"), f"may not be specified when {field} is true")
        if len(text(spec, "hostnameOverride")) > LONGEST_HOSTNAME:
            yield invalid((*path, "hostnameOverride"), spec["hostnameOverride"], f"may not be more than {LONGEST_HOSTNAME} bytes")
    if account := "" if text(spec, "serviceAccountName") else text(spec, "serviceAccount"):
        yield from (invalid((*path, "serviceAccount"), account, message) for message in subdomain_faults(account))
    if text(spec, "nodeName") and size(spec, "schedulingGates"):
        yield forbidden((*path, "nodeName"), "cannot be set until all schedulingGates have been cleared")
