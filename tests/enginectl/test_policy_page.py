"""The page about policies has every field, and what it shows is true."""

import re
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from enginectl.input.plan_policies import load_policies
from resources.plan_policies.data_types import DATA_TYPES
from resources.schema.plan_policy import PlanPolicySpec, Validation
from tests.enginectl.calling import ROOT, Engine

PAGE = (ROOT / "docs" / "policy.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| `([^`]+)` \| (.*) \|$", re.MULTILINE)
(SHOWN,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    """Title of each data type -> its part of the page."""
    titled = re.split(r"^### (\w+)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(titled[::2], titled[1::2], strict=True))


def test_it_has_every_type() -> None:
    assert list(sections()) == list(DATA_TYPES)


@pytest.mark.parametrize("type", DATA_TYPES)
def test_it_has_every_field_of_a_type(type: str) -> None:
    expected = [(name, field.type, field.meaning) for name, field in DATA_TYPES[type].fields.items()]

    assert DATA_TYPES[type].meaning in sections()[type]
    assert [match.groups() for match in ROW.finditer(sections()[type])] == expected


def test_it_has_every_field_of_a_policy() -> None:
    aliases = [field.alias or name for model in (PlanPolicySpec, Validation) for name, field in model.model_fields.items()]

    rows = re.findall(r"^\| `(\w+)` \| (?:`[^`]*`|required|none|) ?\|", PAGE.partition("## Waivers")[0], re.MULTILINE)
    assert set(rows) == set(aliases)


def test_the_policy_that_it_shows_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "shown.yaml"
    file.write_text(SHOWN)

    (policy,) = load_policies([file])
    assert [rule.name for rule in policy.spec.validations] == ["restarts", "available"]


def test_the_error_that_it_shows_is_the_one_that_is_given(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(SHOWN.replace("plan.summary.podsRestarted", "plan.summary.podsRestart"))

    answer = engine("diff", "--against", "empty", "--policy", "policy.yaml")

    assert answer.code == Exit.FAILED
    assert f"\n{answer.err.splitlines()[0]}\n" in PAGE
