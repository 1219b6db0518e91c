"""Profile: where the seconds of a phase went, from the file that `engine run --profile FILE` writes."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path


class Profile:
    """A file of profile lines that a process appends to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def shares(self, since: float, until: float) -> dict[str, float]:
        """Activity -> seconds between two monotonic times; the largest first."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return shares((json.loads(line) for line in lines if line.endswith("}")), since, until)


def shares(slices: Iterable[Mapping[str, object]], since: float, until: float) -> dict[str, float]:
    """The seconds of each activity between two times. A slice that lies partly outside counts in proportion."""
    sums: Counter[str] = Counter()
    for each in slices:
        begin, end, seconds = each["since"], each["until"], each["seconds"]
        assert isinstance(begin, float) and isinstance(end, float) and isinstance(seconds, dict)
        overlap = min(end, until) - max(begin, since)
        if overlap > 0 and end > begin:
            for activity, spent in seconds.items():
                sums[activity] += spent * overlap / (end - begin)
    return {activity: round(spent, 2) for activity, spent in sums.most_common()}
