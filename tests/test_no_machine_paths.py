"""No file mentions the machine or the registry that it was written with."""

import re

import pytest

from tests.test_layout import ROOT, files

# A path of this machine, or a host of a package registry; `mpiuser` is the home directory of an image in an example.
THIS_MACHINE = re.compile(
    r"(?<![\w.$}])/(?:home(?!/mpiuser/)|root|Users|work|workspace)/\w|\.{2}/shared\b"
    r"|https?://[^\s/]*(?:pypi|pythonhosted|npmjs|golang|debian|maven)"
)


def mentions_of_this_machine(text: str) -> list[str]:
    """The paths of this machine and the registry hosts in a text."""
    return [match.group() for match in THIS_MACHINE.finditer(text)]


def test_no_file_mentions_the_machine_it_was_written_on() -> None:
    mentions = {str(path.relative_to(ROOT)): matches for path in files() if (matches := mentions_of_this_machine(path.read_text("utf-8")))}

    assert mentions == {}


# A bar splits what must not stand in this file either.
@pytest.mark.parametrize("place", ["/ho|me/someone/notes", "see ..|/shared/notes", "https://files.py|pi.example/simple", "/wo|rk/main"])
def test_a_mention_of_this_machine_is_found(place: str) -> None:
    assert mentions_of_this_machine(place.replace("|", "")) != []


def test_paths_in_a_cluster_are_no_mention_of_this_machine() -> None:
    assert mentions_of_this_machine("/api/v1/pods /etc/ssl/certs ./tests/controlplane/build ${HOME}/work/x https://kubernetes.io") == []
