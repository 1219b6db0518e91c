"""GivenCertificate: a certificate in files that others write and renew, e.g. cert-manager through a mounted Secret."""

import ssl
from datetime import datetime
from pathlib import Path
from typing import Final

from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from providers.certificates.judging import MOST_BYTES, pair_of, time_fault
from providers.certificates.live_context import LiveCertificate
from providers.certificates.making import Pair
from providers.certificates.secret import CERTIFICATE, CERTIFICATE_KEY
from providers.certificates.server_certificate import Problems

PERIOD: Final = 5.0
"""Seconds between two looks at the files."""


class GivenCertificate(LiveCertificate):
    """A `ServerCertificate` for `certProvisionMode: manual`: `tls.crt` and `tls.key` in a folder.

    The kubelet replaces the files of a mounted Secret by swapping a symbolic link, and other tools write one file after the other: a pair
    that cannot be served is not used, and the one that is served stays.
    """

    def __init__(self, folder: Path, clock: Clock, log: Log) -> None:
        self._folder = folder
        self._clock = clock
        self._log = log
        super().__init__()
        self._problems = Problems(log)
        self._read: tuple[bytes, bytes] | None = None
        """The files that are served."""

    @property
    def authority_expires_at(self) -> datetime | None:
        """None: the authority is not ours."""
        return None

    def is_ready(self) -> bool:
        """Whether a certificate is served that is valid now."""
        pair = self._live.pair
        return pair is not None and not time_fault(pair.certificate, self._clock.now())

    async def run(self) -> None:
        """Look at the files every `PERIOD` seconds, for ever."""
        while True:
            self.refresh()
            await self._clock.sleep(PERIOD)

    def refresh(self) -> None:
        """Serve what the files contain now, if it can be served. Otherwise the reason is logged once."""
        subject = str(self._folder)
        try:
            files = self._content(CERTIFICATE), self._content(CERTIFICATE_KEY)
            if files != self._read:
                self._use(pair_of(*files))
                self._read = files
        except OSError as error:
            self._problems.note(subject, f"{error.filename or subject}: {error.strerror or error}")
        except Unusable as error:
            self._problems.note(subject, str(error))
        else:
            self._note_expiry(subject)

    def _content(self, name: str) -> bytes:
        with (self._folder / name).open("rb") as file:
            return file.read(MOST_BYTES + 1)

    def _use(self, pair: Pair | str) -> None:
        """Serve the pair. Raises `Unusable`."""
        if isinstance(pair, str):
            raise Unusable(pair)
        if fault := time_fault(pair.certificate, self._clock.now()):
            raise Unusable(f"the certificate cannot be served: {fault}")
        try:
            self._live.use(pair)
        except ssl.SSLError as error:
            raise Unusable(f"the certificate cannot be served: {error.reason or error}") from None
        self._log.info("server certificate is in use", expires=pair.expires_at.isoformat())

    def _note_expiry(self, subject: str) -> None:
        """Clients reject the certificate that is served once it has expired; the writer of the files must know."""
        pair = self._live.pair
        fault = time_fault(pair.certificate, self._clock.now()) if pair else ""
        if fault:
            self._problems.note(subject, f"the certificate that is served must be replaced: {fault}")
        else:
            self._problems.end(subject)


class Unusable(Exception):
    """The files contain no pair that can be served; the text says why."""
