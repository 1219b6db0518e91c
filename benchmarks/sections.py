"""Sections: the parts of a document that a benchmark writes."""

from collections.abc import Mapping


def between_markers(document: str, sections: Mapping[str, str]) -> str:
    """The document with each section between its markers `<!-- NAME -->` and `<!-- /NAME -->`.

    A section that is empty stays as it is. Raises `ValueError` if a marker is missing.
    """
    for name, text in sections.items():
        if not text:
            continue
        before, begin, rest = document.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not begin or not end:
            raise ValueError(f"there are no markers for {name}")
        document = f"{before}{begin}{text}{end}{after}"
    return document
