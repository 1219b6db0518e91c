"""Bill of materials: the engine and everything that it needs at run time, with versions and licences, as CycloneDX JSON.

    python deploy/image/bill_of_materials.py > sbom.cdx.json

Computed from the metadata of the installed distributions of the Python that runs this. The same distributions give the same bytes.
"""

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any, Final

ENGINE: Final = "grove-engine"
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

SPDX: Final = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What distributions call their licence -> its SPDX identifier."""


def needed() -> list[Distribution]:
    """The engine and the distributions that it needs without its extras, directly or not, sorted by name."""
    names, every = [ENGINE], {}
    while names:
        name = normalized(names.pop())
        if name not in every:
            try:
                every[name] = distribution(name)
            except PackageNotFoundError:
                continue  # Needed on other platforms or versions of Python only.
            names += requirements(every[name])
    return [every[name] for name in sorted(every)]


def requirements(package: Distribution) -> Iterator[str]:
    """The names of the distributions that one needs without extras."""
    for requirement in package.requires or ():
        if "extra ==" not in requirement and (name := NAME.match(requirement)):
            yield name[0]


def licence(package: Distribution) -> str:
    """The SPDX expression of a distribution's licence; as it is written if there is none for it, `NOASSERTION` if it has none."""
    metadata = package.metadata
    if expressions := metadata.get_all("License-Expression"):
        return str(expressions[0])
    classifiers = [text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or () if text.startswith("License :: ")]
    named = [text for text in classifiers if text != "OSI Approved"] or [
        text.strip().split("\n")[0] for text in metadata.get_all("License") or ()
    ]
    return " OR ".join(sorted({SPDX.get(text, text) for text in named if text})) or "NOASSERTION"


def normalized(name: str) -> str:
    """The name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def component(package: Distribution) -> dict[str, Any]:
    """One distribution as CycloneDX has it."""
    name = normalized(package.metadata["Name"])
    reference = f"pkg:pypi/{name}@{package.version}"
    return {
        "type": "application" if name == ENGINE else "library",
        "bom-ref": reference,
        "name": name,
        "version": package.version,
        "purl": reference,
        "licenses": [{"expression": licence(package)}],
    }


def bill_of_materials() -> dict[str, Any]:
    """The whole document."""
    components = {each["name"]: each for each in map(component, needed())}
    engine = components.pop(ENGINE)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": engine},
        "components": list(components.values()),
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=1)
    sys.stdout.write("\n")
