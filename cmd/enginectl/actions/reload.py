"""Reload: the configuration of `engine run` follows its file."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import InputError
from engine.runtime.logs import ReplaceableLog
from engine.runtime.loop import Reload
from engine.runtime.passes import Engine
from engine.runtime.provider import Provider
from enginectl.actions.requirements import require_configured
from enginectl.base.exit_codes import MissingRequirement
from enginectl.wiring.configuration import Wiring, configuration_of
from enginectl.wiring.configuration_file import ConfigurationFile, ConfigurationWatch, can_be_followed
from enginectl.wiring.published_configuration import with_leases_of
from enginectl.wiring.scope import Selection, scope_of
from resources.ports.configuration import Configuration, required_kinds
from resources.reports.events import event_builder
from resources.settings import LeaderElection, Settings
from resources.settings_fields import NEEDS_RESTART, NOT_PLANNED_WITH, changed_fields, is_in

MAX_LOGGED: Final = 20
"""How many errors of a file are logged, and how many warnings."""

REQUIREMENT_INTERVAL: Final = 60.0
"""Seconds after which it is checked again whether the cluster serves what the file in its present state needs."""


Use = Callable[[Wiring], None]
"""Is called with a configuration that is used from now on."""


def reload_of(
    wiring: Wiring, selection: Selection, log: ReplaceableLog, *on_use: Use, installed: LeaderElection | None = None
) -> Reload[Configuration] | None:
    """The function by which a loop follows the configuration file; None if there is no file, or if it can be read only once.

    `on_use` are called with what is used. `installed`: the leader election of the installation, for what the file leaves out.
    """
    path = wiring.options.config
    if path is None or not can_be_followed(path):
        return None
    return ConfigurationReload(wiring, path, selection, log, on_use, installed)


def with_extent_of(settings: Settings, started: Settings) -> Settings:
    """The settings with what a process manages from its start to its end: the namespaces, and whether graphs are among it."""
    dynamo = settings.dynamo.model_copy(update={"enabled": started.dynamo.enabled})
    return settings.model_copy(update={"namespaces": started.namespaces, "dynamo": dynamo})


class _Candidate(Struct, frozen=True):
    """Settings that are valid and not in use yet."""

    settings: Settings
    configuration: Configuration


class ConfigurationReload:
    """The settings in use, and the file that they come from."""

    def __init__(
        self,
        wiring: Wiring,
        path: Path,
        selection: Selection,
        log: ReplaceableLog,
        on_use: Iterable[Use],
        installed: LeaderElection | None,
    ) -> None:
        self._on_use = tuple(on_use)
        self._installed = installed
        self._wiring = wiring
        """With the settings in use."""
        self._started_with = wiring.settings
        self._last_read = wiring.settings
        self._watch = ConfigurationWatch(path)
        self._path = path
        self._selection = selection
        self._log = log
        self._warnings: frozenset[str] | None = None
        """The warnings of the file as it was read last; None before it was read: at the start they were printed."""
        self._candidate: _Candidate | None = None
        self._refusal = ""
        """Why the cluster does not allow the candidate, as it was logged."""
        self._check_at = 0.0

    async def __call__(self, engine: Engine[Configuration]) -> Engine[Configuration] | None:
        """The engine with the configuration of the file if that has changed; None otherwise. Logs what changes, and what is refused."""
        if (file := self._watch.changed()) is not None:
            self._read(file)
        now = self._wiring.clock.monotonic()
        if self._candidate is None or now < self._check_at:
            return None
        self._check_at = now + REQUIREMENT_INTERVAL
        if message := await self._unserved(self._candidate.configuration, engine.provider):
            self._refuse(message)
            return None
        return self._adopt(self._candidate, engine)

    def _read(self, file: ConfigurationFile) -> None:
        """Take the file's settings as the candidate, if they can be used and differ from those in use."""
        self._candidate, self._refusal, self._check_at = None, "", 0.0
        if file.settings is None:
            self._log_all(map(str, file.errors), "configuration refused, the previous one stays in use")
            return
        known, self._warnings = self._warnings, frozenset(map(str, file.warnings))
        if known is not None:
            self._log_all(sorted(self._warnings - known), "configuration")
        settings = with_leases_of(file.settings, self._installed)
        self._log_needs_restart(settings)
        self._last_read = settings
        settings = with_extent_of(settings, self._started_with)
        try:
            if changed_fields(self._wiring.settings, settings) or self._logs_otherwise(settings):
                self._candidate = _Candidate(settings, configuration_of(settings))
        except InputError as error:
            self._refuse(str(error))

    def _log_all(self, messages: Iterable[str], event: str) -> None:
        """One line for each message; the last one says how many there are more."""
        listed = list(messages)
        for message in listed[:MAX_LOGGED]:
            self._log.warning(event, reason=message)
        if len(listed) > MAX_LOGGED:
            self._log.warning(event, reason=f"{len(listed) - MAX_LOGGED} more; `engine config check {self._path}` lists them")

    def _log_needs_restart(self, settings: Settings) -> None:
        """Name the fields that have changed since the file was read last and differ from those that the process was started with."""
        news = set(changed_fields(self._last_read, settings))
        for field in changed_fields(self._started_with, settings):
            if field in news and is_in(field, NEEDS_RESTART):
                self._log.warning("takes effect after a restart", field=field, file=self._path)

    def _logs_otherwise(self, settings: Settings) -> bool:
        """Whether `logFormat` is written in one of the two files only: without it the format depends on the terminal."""
        return ("log_format" in settings.model_fields_set) != ("log_format" in self._wiring.settings.model_fields_set)

    async def _unserved(self, configuration: Configuration, provider: Provider) -> str:
        """The message about a kind that this configuration needs, the one in use does not, and the cluster does not serve; or empty."""
        needed = set(required_kinds(configuration)) - set(required_kinds(self._wiring.configuration))
        try:
            if needed:
                await require_configured(configuration, provider)
        except MissingRequirement as error:
            return str(error)
        return ""

    def _refuse(self, message: str) -> None:
        """Log once, for each state of the file, why it is not used."""
        if message != self._refusal:
            self._log.warning("configuration refused, the previous one stays in use", reason=f"{self._path}: {message}")
        self._refusal = message

    def _adopt(self, candidate: _Candidate, engine: Engine[Configuration]) -> Engine[Configuration] | None:
        """Use the candidate from now on. None if it changes nothing that plans depend on."""
        fields = changed_fields(self._wiring.settings, candidate.settings)
        used = [field for field in fields if not is_in(field, NEEDS_RESTART)]
        self._wiring, self._candidate = replace(self._wiring, settings=candidate.settings, configuration=candidate.configuration), None
        self._log.use(self._wiring.log)
        if not used:
            return None
        self._log.info("configuration reloaded", file=self._path, fields=", ".join(used))
        for use in self._on_use:
            use(self._wiring)
        if all(is_in(field, NOT_PLANNED_WITH) for field in used):
            return None
        scope = scope_of(candidate.configuration, self._selection)
        return replace(
            engine,
            # The same object while the kinds are the same: then the watches go on.
            scope=engine.scope if scope == engine.scope else scope,
            configuration=candidate.configuration,
            events_of=event_builder(candidate.configuration),
        )
