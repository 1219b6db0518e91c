"""What contributors and the release rely on: files that name what exists, and release notes that the changelog has."""

import re
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.version import VERSION
from resources.schema.crds import crds
from tests.chart.hub import changes
from tests.test_layout import ROOT

TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
KIT = ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "SUPPORT.md", ".github/pull_request_template.md")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())


def loaded(name: str) -> Any:
    """A YAML file of the project."""
    return yaml.load((ROOT / name).read_text(), yaml.CSafeLoader)


def test_every_target_that_the_kit_and_the_workflows_call_exists() -> None:
    texts = [(ROOT / name).read_text() for name in (*KIT, ".pre-commit-config.yaml")] + [path.read_text() for path in WORKFLOWS]
    called = {target for text in texts for target in re.findall(r"(?:`|run: |entry: |^)make ([a-z0-9-]+)", text, re.MULTILINE)}

    assert {"test", "check", "e2e", "style", "demo"} <= called <= TARGETS


def test_the_kit_has_no_address_of_a_person() -> None:
    assert [name for name in KIT if re.search(r"[\w.]+@[\w-]+\.\w+", (ROOT / name).read_text())] == []


def test_the_owners_own_what_exists() -> None:
    owned = re.findall(r"^(/\S+) +@", (ROOT / ".github" / "CODEOWNERS").read_text(), re.MULTILINE)

    assert owned and [path for path in owned if not (ROOT / path[1:]).exists()] == []


def test_every_folder_with_dependencies_is_kept_up_to_date() -> None:
    updates = loaded(".github/dependabot.yml")["updates"]
    folders = {(each["package-ecosystem"], path) for each in updates for path in each.get("directories", [each.get("directory")])}

    assert {("pip", "/"), ("pip", "/sandbox"), ("docker", "/deploy"), ("github-actions", "/"), ("gomod", "/tests/controlplane")} <= folders


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_right_that_a_job_does_not_name(workflow: Any) -> None:
    body = yaml.load(workflow.read_text(), yaml.CSafeLoader)

    assert body["permissions"] == {} and all(job["permissions"] and job["timeout-minutes"] for job in body["jobs"].values())


def test_the_notes_of_a_release_are_its_section_of_the_changelog_and_every_file_has_its_version() -> None:
    script = runpy.run_path(str(ROOT / "deploy" / "release" / "notes.py"))
    changelog = "# Changelog\n\n## [Unreleased]\n\n- later\n\n## [0.2.0] - 2026-12-01\n\n- a\n- b\n\n## [0.1.0] - 2026-11-27\n\n- first\n"

    assert [script["notes"](changelog, version) for version in ("0.2.0", "0.1.0", "0.3.0")] == ["- a\n- b", "- first", ""]
    assert list(script["others"](VERSION)) == [] and len(list(script["others"]("9.9.9"))) == 4


def test_a_release_shows_an_entry_on_one_line_with_links_that_lead_out_of_it_and_no_more_than_it_takes() -> None:
    body = runpy.run_path(str(ROOT / "deploy" / "release" / "notes.py"))["body"]
    section = "### Added\n\n- one of\n  [two](docs/a.md#b)\n- [three](https://cel.dev)\n\n### Fixed\n\n- four"

    shown = body(section, "https://host/x/blob/v1")
    one, two = "- one of [two](https://host/x/blob/v1/docs/a.md#b)", "- [three](https://cel.dev)"
    assert shown == f"### Added\n\n{one}\n{two}\n\n### Fixed\n\n- four"
    rest = "more entries are in the [changelog](https://host/x/blob/v1/CHANGELOG.md)."
    assert body(section, "https://host/x/blob/v1", len(f"### Added\n\n{one}\n")) == f"### Added\n\n{one}\n\n2 {rest}"


def test_the_notes_of_every_release_fit() -> None:
    script = runpy.run_path(str(ROOT / "deploy" / "release" / "notes.py"))
    changelog = (ROOT / "CHANGELOG.md").read_text().replace("## [Unreleased]", "## [9.9.9] - 2026-12-31")
    versions = re.findall(r"^## \[(.*?)\]", changelog, re.MULTILINE)

    bodies = [script["body"](script["notes"](changelog, version), "https://github.com/owner/name/blob/v") for version in versions]
    assert bodies and all(body.startswith("### ") and len(body) < 125_000 for body in bodies)
    assert [link for body in bodies for link in re.findall(r"\]\(([^)]*)\)", body) if "://" not in link] == []


def test_the_chart_of_a_release_names_its_repository_and_the_images_that_it_pushes() -> None:
    completed = runpy.run_path(str(ROOT / "deploy" / "release" / "chart.py"))["completed"]
    texts = [(ROOT / "deploy" / "chart" / name).read_text() for name in ("Chart.yaml", "values.yaml")]

    chart, values = (yaml.load(text, yaml.CSafeLoader) for text in completed(*texts, "https://host/owner/name", "ghcr.io/owner"))

    images = {each["name"]: each["image"] for each in yaml.load(chart["annotations"]["artifacthub.io/images"], yaml.CSafeLoader)}
    assert (chart["home"], chart["sources"]) == ("https://host/owner/name", ["https://host/owner/name"])
    assert images == {name: f"ghcr.io/owner/{name}:{VERSION}" for name in ("grove-engine", "grove-initc")}
    assert [values[key]["repository"] for key in ("image", "initImage")] == ["ghcr.io/owner/grove-engine", "ghcr.io/owner/grove-initc"]


def test_images_and_chart_of_a_release_are_pushed_under_the_owner_in_lower_case(tmp_path: Path) -> None:
    jobs = loaded(".github/workflows/release.yml")["jobs"]
    file, registries = tmp_path / "env", {}
    for name, job in jobs.items():
        if "REGISTRY" not in str(job):
            continue
        first = job["steps"][0]["run"]
        file.write_text("")
        subprocess.run(["bash", "-c", first], env={"GITHUB_REPOSITORY_OWNER": "Some-Owner", "GITHUB_ENV": str(file)}, check=True)
        registries[name] = file.read_text()

    assert registries == dict.fromkeys(("images", "chart"), "REGISTRY=ghcr.io/some-owner\n")
    assert "repository_owner" not in (ROOT / ".github" / "workflows" / "release.yml").read_text()


def test_what_is_new_for_artifact_hub_is_the_first_sentence_of_an_entry() -> None:
    changelog = (
        "## [Unreleased]\n\n- x\n\n## [1.0.0] - 2026-11-28\n\n### Added\n\n- `a` of\n  [b](c.md), e.g. d. More.\n\n### Fixed\n\n- e\n"
    )

    assert list(changes(changelog, "1.0.0")) == [
        {"kind": "added", "description": "a of b, e.g. d."},
        {"kind": "fixed", "description": "e"},
    ]
    assert list(changes(changelog, "2.0.0")) == []


def test_the_chart_lists_every_definition_for_artifact_hub() -> None:
    annotations = loaded("deploy/chart/Chart.yaml")["annotations"]
    listed = {(each["name"], each["version"], each["kind"]) for each in yaml.load(annotations["artifacthub.io/crds"], yaml.CSafeLoader)}

    defined = {(body["metadata"]["name"], body["spec"]["versions"][0]["name"], body["spec"]["names"]["kind"]) for body in crds()}
    assert listed == defined
