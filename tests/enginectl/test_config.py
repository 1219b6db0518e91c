"""`engine config`: an operator configuration is checked completely, and shown with its defaults."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from msgspec.structs import replace

from engine.runtime.provider import Client
from enginectl.base.exit_codes import Exit
from enginectl.base.options import Options
from enginectl.serving.endpoints import certificate_of
from enginectl.serving.servers import Served, addresses
from enginectl.wiring import configuration_file
from enginectl.wiring.configuration import protection, wire
from enginectl.wiring.configuration_file import MAX_BYTES, MAX_FINDINGS
from enginectl.wiring.leases import lease_of, shard_count
from providers.certificates.live_context import server_context
from providers.registry import SCHEDULERS
from resources.schema.unknown_fields import model_in
from resources.schema.wire import Wire
from resources.settings import Section, Settings, read
from resources.settings_fields import WITHOUT_EFFECT
from tests.enginectl.calling import ROOT, Engine

EXAMPLE = ROOT / "examples" / "04-auto-mnnvl" / "config" / "operator.yaml"
FAULTY = """\
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
leaderElection:
  leaseDuration: 5s
  resourceLock: endpoints
network:
  autoMnnvlEnabled: true
  domainDrainTimeout: soon
logLevel: loud
server:
  metrics: {port: http, prot: 1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file for a configuration."""
    return tmp_path / "operator.yaml"


def test_a_valid_file_is_ok(engine: Engine) -> None:
    answer = engine("config", "check", EXAMPLE)

    assert (answer.code, answer.out, answer.err) == (Exit.DONE, "ok\nexit 0: done\n", "")


def test_all_errors_and_warnings_are_printed_with_their_lines(engine: Engine, file: Path) -> None:
    file.write_text(FAULTY)

    answer = engine("config", "check", file)

    assert (answer.code, answer.err) == (Exit.USAGE, "")
    assert answer.out.splitlines() == [
        f'error: {file}:4: leaderElection.leaseDuration: Invalid value: "5s": LeaseDuration must be greater than RenewDeadline',
        f'error: {file}:5: leaderElection.resourceLock: Unsupported value: "endpoints": supported values: "leases"',
        f'error: {file}:8: network.domainDrainTimeout: must be a duration such as 30s, 4h or 1h30m, got "soon"',
        f'error: {file}:9: logLevel: Unsupported value: "loud": supported values: "debug", "info", "error"',
        f'error: {file}:11: server.metrics.port: must be an integer, got "http"',
        f"warning: {file}:7: network.autoMnnvlEnabled is unknown and ignored; did you mean network.autoMNNVLEnabled?",
        f"warning: {file}:11: server.metrics.prot is unknown and ignored; did you mean server.metrics.port?",
        "exit 64: usage error",
    ]


def test_other_commands_report_the_same(engine: Engine, file: Path) -> None:
    file.write_text(FAULTY)
    lines = engine("config", "check", file).out.splitlines()

    answer = engine("diff", "--against", "empty", "--config", file)

    assert answer.code == Exit.USAGE
    assert sorted(answer.err.splitlines()) == sorted(line.replace("error: ", "engine: ") for line in lines)


def test_fields_without_effect_are_listed_where_they_are_set(engine: Engine, file: Path) -> None:
    file.write_text(
        "logLevel: error\nleaderElection:\n  resourceLock: leases\ncontrollers: {podGang: {}, podClique: {concurrentSyncs: 3}}\n"
    )

    answer = engine("config", "check", file)

    assert answer.code == Exit.DONE
    assert answer.out.splitlines() == [
        "ok, 3 fields have no effect in this engine:",
        f"  {file}:1: logLevel has no effect: error is treated as info",
        f"  {file}:3: leaderElection.resourceLock has no effect: the lock is always a Lease",
        f"  {file}:4: controllers.podClique.concurrentSyncs has no effect: one loop plans all kinds",
        "exit 0: done",
    ]


def test_schedulers_without_a_back_end_are_warnings(engine: Engine, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration_file, "SCHEDULERS", {"default-scheduler": SCHEDULERS["default-scheduler"]})
    file.write_text("scheduler:\n  defaultProfileName: volcano\n  profiles:\n  - name: default-scheduler\n  - name: volcano\n")

    answer = engine("config", "check", file)

    assert (answer.code, answer.out.splitlines()[:2]) == (
        Exit.DONE,
        [
            f"warning: {file}:2: scheduler.defaultProfileName: there is no back end for volcano: "
            "workloads that name no scheduler are rejected",
            f"warning: {file}:5: scheduler.profiles[1].name: there is no back end for volcano: workloads that name it are rejected",
        ],
    )


def test_every_scheduler_that_can_be_configured_has_a_back_end(engine: Engine, file: Path) -> None:
    names = ["default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler"]
    file.write_text(yaml.safe_dump({"scheduler": {"profiles": [{"name": name} for name in names], "defaultProfileName": "volcano"}}))

    answer = engine("config", "check", file)

    assert (answer.code, answer.out) == (Exit.DONE, "ok\nexit 0: done\n")
    assert list(SCHEDULERS) == names and all(back_end.name == name for name, back_end in SCHEDULERS.items())


def test_the_json_document_has_every_finding(engine: Engine, file: Path) -> None:
    file.write_text("logLevel: loud\ndebugging: {pprofBindPort: 1}\nnovel: 1\n")

    answer = engine("config", "check", "-o", "json", file)

    assert (answer.code, answer.err) == (Exit.USAGE, "exit 64: usage error\n")
    assert answer.document == {
        "version": 1,
        "kind": "ConfigCheck",
        "usable": False,
        "errors": [
            {
                "file": str(file),
                "line": 1,
                "field": "logLevel",
                "message": 'logLevel: Unsupported value: "loud": supported values: "debug", "info", "error"',
            }
        ],
        "warnings": [{"file": str(file), "line": 3, "field": "novel", "message": "novel is unknown and ignored"}],
        "withoutEffect": [
            {
                "file": str(file),
                "line": 2,
                "field": "debugging.pprofBindPort",
                "message": "debugging.pprofBindPort has no effect: there is no profiling endpoint",
            }
        ],
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- a\n", ":1: must be an object, got a list"),
        ("just text\n", ':1: must be an object, got "just text"'),
        ("logLevel: info\n---\nlogLevel: debug\n", ":3: a second document: the configuration is one document"),
        ("logLevel: info\nlogLevel: debug\n", ":2: the key logLevel appears twice"),
        ("network:\n  x: {y: 1, y: 2}\n", ":2: the key y appears twice"),
        ("network: [\n", ":2: not YAML: did not find expected node content"),
        ("a: \x01\n", ":1: not YAML: control characters are not allowed"),
        ("a: " + "[" * 5000, ":1: nested deeper than 100 levels"),
        ("a: &a [1]\nb: *c\n", ":2: there is no anchor &c above this line"),
        ("runtimeClientConnection: {qps: .inf}\n", ":1: .inf is not a JSON number"),
        ("#" * (MAX_BYTES + 1), f": {MAX_BYTES + 1} bytes exceed the limit of {MAX_BYTES}"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_with_its_line(engine: Engine, file: Path, text: str, error: str) -> None:
    file.write_text(text)

    check, diff = engine("config", "check", file), engine("diff", "--against", "empty", "--config", file)

    assert (check.code, check.out.splitlines()) == (Exit.USAGE, [f"error: {file}{error}", "exit 64: usage error"])
    assert (diff.code, diff.err.splitlines()) == (Exit.USAGE, [f"engine: {file}{error}", "exit 64: usage error"])


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"null\n", b"{}\n", b"\xef\xbb\xbflogLevel: info\n"])
def test_an_empty_file_is_usable(engine: Engine, file: Path, content: bytes) -> None:
    file.write_bytes(content)

    assert (engine("config", "check", file).out, engine("config", "show", file)) == ("ok\nexit 0: done\n", engine("config", "show"))


def test_text_that_is_not_utf_8_is_an_error(engine: Engine, file: Path) -> None:
    file.write_bytes(b"logLevel: info\nx: \xff\n")

    assert engine("config", "check", file).out.splitlines()[0] == f"error: {file}:2: not UTF-8 text"


def test_control_characters_are_escaped(engine: Engine, file: Path) -> None:
    file.write_text('"net\\e[2Jwork\\u202e": 1\nlogLevel: "\\e]0;x\\a"\nscheduler: {profiles: [{name: "\\e[1m"}]}\n')

    text, document = engine("config", "check", file), engine("config", "check", "-o", "json", file)

    assert text.out.replace("\n", "").isprintable() and document.out.replace("\n", "").isprintable()
    assert f"warning: {file}:1: [net\\x1b[2Jwork\\u202e] is unknown and ignored" in text.out


def test_a_very_long_list_of_findings_is_cut(engine: Engine, file: Path) -> None:
    file.write_text("scheduler:\n  profiles:\n" + "".join(f"  - {{a: {index}}}\n" for index in range(MAX_FINDINGS + 5)))

    document = engine("config", "check", "-o", "json", file).document

    for findings in (document["errors"], document["warnings"]):
        assert (len(findings), findings[-2]["line"], findings[-1]["line"]) == (MAX_FINDINGS + 1, MAX_FINDINGS + 2, None)
        assert findings[-1]["message"] == f"there are more than {MAX_FINDINGS} of these; the others are not listed"


def test_aliases_are_followed(engine: Engine, file: Path) -> None:
    file.write_text("server:\n  metrics: &endpoint\n    prot: 1\n  healthProbes: *endpoint\n")

    assert engine("config", "check", file).out.splitlines()[:2] == [
        f"warning: {file}:3: server.metrics.prot is unknown and ignored; did you mean server.metrics.port?",
        f"warning: {file}:4: server.healthProbes.prot is unknown and ignored; did you mean server.healthProbes.port?",
    ]


def test_a_json_file_has_lines_too(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "operator.json"
    file.write_text('{\n\t"logLevel": "info",\n\t"logFormt": "text"\n}\n')

    assert engine("config", "check", file).out.splitlines()[0] == (
        f"warning: {file}:3: logFormt is unknown and ignored; did you mean logFormat?"
    )


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_file_that_cannot_be_read_is_named(engine: Engine, tmp_path: Path, command: str) -> None:
    missing, folder = engine("config", command, tmp_path / "none.yaml"), engine("config", command, tmp_path)

    assert (missing.code, missing.err.splitlines()[0]) == (Exit.USAGE, f"engine: {tmp_path}/none.yaml: no such file or directory")
    assert (folder.code, folder.err.splitlines()[0]) == (Exit.USAGE, f"engine: {tmp_path}: is a directory")


def test_the_whole_configuration_is_shown_with_its_defaults(engine: Engine) -> None:
    answer = engine("config", "show", EXAMPLE)
    settings, _ = read(yaml.load(EXAMPLE.read_text(), yaml.CSafeLoader))

    assert (answer.code, answer.err) == (Exit.DONE, "")
    assert yaml.load(answer.out, yaml.CSafeLoader) == settings.model_dump(mode="json", by_alias=True)
    assert yaml.load(answer.out, yaml.CSafeLoader)["leaderElection"]["leaseDuration"] == "15s"


def test_without_a_file_the_one_of_the_option_or_the_defaults_are_shown(engine: Engine) -> None:
    assert engine("config", "show", "--config", EXAMPLE) == engine("config", "show", EXAMPLE)
    assert yaml.load(engine("config", "show").out, yaml.CSafeLoader) == json.loads(Settings().model_dump_json(by_alias=True))


def test_what_is_shown_can_be_used_and_means_the_same(engine: Engine, file: Path) -> None:
    shown = engine("config", "show").out
    file.write_text(shown)

    assert engine("config", "show", file).out == shown
    assert "warning" not in engine("config", "check", file).out


def test_a_file_with_errors_is_not_shown(engine: Engine, file: Path) -> None:
    file.write_text(FAULTY)

    answer = engine("config", "show", file)

    assert (answer.code, answer.out) == (Exit.USAGE, "")
    assert f"engine: {file}:9: logLevel: " in answer.err


@pytest.mark.parametrize("command", ["config", "config check", "config show"])
def test_the_commands_take_the_common_options(engine: Engine, command: str) -> None:
    answer = engine("-v", *command.split(), "--help")

    assert answer.code == Exit.DONE
    assert "--config" in answer.out and "--log-format" in answer.out


def fields_read(monkeypatch: pytest.MonkeyPatch) -> set[tuple[type[Wire], str]]:
    """A set to which every field of a section is added when somebody reads it."""
    fields: set[tuple[type[Wire], str]] = set()

    def recorded(self: Section, name: str) -> Any:
        if name in type(self).model_fields:
            fields.add((type(self), name))
        return object.__getattribute__(self, name)

    monkeypatch.setattr(Section, "__getattribute__", recorded)
    return fields


def fields_with_effect(model: type[Wire] = Settings, section: str = "") -> set[tuple[type[Wire], str]]:
    """The fields, sections apart, that are not listed as having no effect."""
    fields: set[tuple[type[Wire], str]] = set()
    for name, field in model.model_fields.items():
        path, inner = f"{section}{field.alias or name}", model_in(field.annotation)
        if path in WITHOUT_EFFECT:
            continue
        if inner is None:
            fields.add((model, name))
        else:
            fields |= fields_with_effect(inner, f"{path}{'' if field.annotation is inner else '[]'}.")
    return fields


def test_exactly_the_fields_with_an_effect_are_read(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_text(yaml.safe_dump(Settings().model_dump(mode="json", by_alias=True)))
    fields = fields_read(monkeypatch)

    wiring = wire(Options(config=file))
    _ = wiring.log, lease_of(wiring, cast(Client, None), ""), shard_count(wiring, None), protection(wiring.settings, wiring.configuration)
    _ = addresses(wiring.settings, Served(), server_context())
    for mode in ("auto", "manual"):
        webhooks = wiring.settings.server.webhooks.model_copy(update={"cert_provision_mode": mode})
        server = wiring.settings.server.model_copy(update={"webhooks": webhooks})
        settings = wiring.settings.model_copy(update={"server": server})
        certificate_of(replace(wiring, settings=settings), cast(Client, None), wiring.log)

    about_the_file: set[tuple[type[Wire], str]] = {(Settings, "api_version"), (Settings, "kind")}
    sections = {(model, name) for model, name in fields if model_in(model.model_fields[name].annotation)}
    assert fields - sections == fields_with_effect() - about_the_file
