"""PodFault: what a manifest alone shows to be wrong with the pods of a service."""

from resources.schema.issues import spelled


class PodFault(ValueError):
    """A pod cannot be built. `path` is the field below the object, `detail` the reason."""

    def __init__(self, path: tuple[str | int, ...], detail: str) -> None:
        super().__init__(f"{spelled(path)}: {detail}")
        self.path = path
        self.detail = detail
