"""The chart's admission policies as a template: computed from the policies under every combination of features."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml
from msgspec.structs import asdict

from providers.fabrics.nvidia.fabric import Nvidia
from providers.registry import SCHEDULERS
from providers.schedulers.kai import KaiScheduler
from providers.schedulers.kube import KUBE, KubeScheduler
from resources.admission.managed_rules import Protection
from resources.children.table import CHILDREN
from resources.install.admission_policies import policies
from resources.ports.configuration import SET_LIMITS, Configuration, SizeLimits, WorkloadLimits
from resources.ports.scheduler import Scheduler
from tests.chart.conditions import Features, assignments, combinations, conditions
from tests.chart.webhooks_template import SOME, with_namespaces

FEATURES = ("auto", "topology")
DEFAULT, PLAIN, AWARE, OPERATOR = "default-here", "plain-here", "aware-here", "operator-here"
"""Names that stand for those of the values."""
REPLACED: Final[Mapping[str, str]] = {
    f'"{AWARE}", "{DEFAULT}", "{PLAIN}"': '{{ include "grove-engine.schedulerNames" . }}',
    f'"{AWARE}"': '{{ include "grove-engine.topologySchedulers" . }}',
    f'"{DEFAULT}"': '{{ dig "scheduler" "defaultProfileName" "default-scheduler" .Values.config | quote }}',
    f'"{OPERATOR}"': '{{ include "grove-engine.trustedUsers" . }}',
}
"""What stands for a value -> the template of the value."""
STANDINS: Final = SizeLimits(710_001, 710_002, 710_003, 710_004)
"""Numbers that stand for the limits of the values."""
DEFAULTS: Final = asdict(SET_LIMITS)
LIMITS: Final[Mapping[str, str]] = {
    str(number): f'{{{{ dig "limits" "set" "{name}" {DEFAULTS[name]} .Values.config | int64 }}}}'
    for name, number in asdict(STANDINS).items()
}


def policies_template() -> str:
    """The file with the policies and their bindings."""
    aware = " ".join(f'"{name}"' for name, scheduler in sorted(SCHEDULERS.items()) if scheduler.topologies is not None)
    by_name: dict[str, dict[Features, Any]] = {}
    for chosen in combinations(FEATURES):
        for body in objects(chosen):
            by_name.setdefault(f"{body['kind']}/{body['metadata']['name']}", {})[chosen] = body
    lines = [
        "{{- /* Computed from the admission rules by `make chart`. Do not edit. */}}",
        '{{- define "grove-engine.schedulerNames" -}}',
        "{{- $names := list }}",
        '{{- range include "grove-engine.schedulers" . | fromJsonArray }}{{ $names = append $names (quote .) }}{{ end }}',
        '{{- join ", " $names }}',
        "{{- end }}",
        '{{- define "grove-engine.topologySchedulers" -}}',
        "{{- $names := list }}",
        '{{- range include "grove-engine.schedulers" . | fromJsonArray }}',
        f'{{{{- if or (has . (list {aware})) (and (eq . "{KUBE}") (include "grove-engine.gangs" $)) }}}}'
        "{{ $names = append $names (quote .) }}{{ end }}",
        "{{- end }}",
        '{{- join ", " $names }}',
        "{{- end }}",
        '{{- if eq (include "grove-engine.admission" .) "policies" }}',
        *assignments(["$auto", "$topology", "$protects"]),
        *(line for bodies in by_name.values() for line in policy_lines(bodies)),
        "{{- end }}",
        "",
    ]
    return "\n".join(lines)


def objects(chosen: Features) -> Iterator[Mapping[str, Any]]:
    """The policies of an installation with these features, with names that stand for those of the values."""
    schedulers: dict[str, Scheduler] = {PLAIN: KubeScheduler(), AWARE: KaiScheduler(), DEFAULT: KubeScheduler()}
    fabrics, limits = (Nvidia(auto="auto" in chosen),), WorkloadLimits(STANDINS)
    configuration = Configuration(schedulers, DEFAULT, topology="topology" in chosen, fabrics=fabrics, namespaces=(SOME,), limits=limits)
    yield from policies(configuration, Protection(CHILDREN.protected(configuration), OPERATOR), mutating=True)


def policy_lines(bodies: Mapping[Features, Any]) -> Iterator[str]:
    """The lines of one object, of which `bodies` has one version for each combination in which it exists."""
    body = next(iter(bodies.values()))
    asked = [
        *(["and $auto .Values.mutatingPolicies"] if body["kind"].startswith("Mutating") else []),
        *(['include "grove-engine.graphs" .'] if body["metadata"]["name"].startswith("dynamo") else []),
        *(["$protects"] if body["metadata"]["name"].startswith("managed-objects") else []),
    ]
    yield from (f"{{{{- if {condition} }}}}" for condition in asked)
    yield "---"
    yield f"apiVersion: {body['apiVersion']}"
    yield f"kind: {body['kind']}"
    yield "metadata:"
    yield f"  name: {body['metadata']['name']}"
    yield "  labels:"
    yield '    {{- include "grove-engine.labels" (list $ "admission-policy" nil) | nindent 4 }}'
    yield "spec:"
    for key, value in body["spec"].items():
        if key != "validations":
            yield from with_namespaces(written({key: value}, "  "))
            continue
        yield "  validations:"
        yield from validation_lines({chosen: version["spec"][key] for chosen, version in bodies.items()})
    yield from ("{{- end }}" for _ in asked)


def validation_lines(versions: Mapping[Features, list[Mapping[str, str]]]) -> Iterator[str]:
    """The validations of all combinations in order, each under the condition under which it is one."""
    by_text = {text_of(rule): rule for rules in versions.values() for rule in rules}
    found = conditions({chosen: [text_of(rule) for rule in rules] for chosen, rules in versions.items()}, FEATURES)
    for text in in_order([[text_of(rule) for rule in rules] for rules in versions.values()]):
        if found[text]:
            yield f"{{{{- if {found[text]} }}}}"
        yield from written([by_text[text]], "    ")
        if found[text]:
            yield "{{- end }}"


def in_order(sequences: list[list[str]]) -> list[str]:
    """Everything in these sequences once, in an order that agrees with all of them."""
    result: list[str] = []
    for sequence in sequences:
        position = 0
        for item in sequence:
            if item in result:
                position = result.index(item) + 1
            else:
                result.insert(position, item)
                position += 1
    return result


def text_of(rule: Mapping[str, str]) -> str:
    """A rule as something that can be compared."""
    return repr(sorted(rule.items()))


class Dumper(yaml.SafeDumper):
    """Writes strings in single quotes, in which a template can put text as it is."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _quoted(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style="'" if not data.replace("-", "").isalnum() else None)


Dumper.add_representer(str, _quoted)


def written(value: Any, indent: str) -> Iterator[str]:
    """The lines of a value, with templates instead of the names that stand for values."""
    text = yaml.dump(value, Dumper=Dumper, width=10_000, sort_keys=False)
    assert "{{" not in text, text
    for sign, template in ({**REPLACED, **LIMITS}).items():
        text = text.replace(sign, template)
    yield from (f"{indent}{line}" for line in text.splitlines())
