"""ServerCertificate: the certificate of the webhook server, from any source."""

import ssl
from datetime import datetime
from typing import Any, Protocol

from engine.runtime.logs import Log


class ServerCertificate(Protocol):
    """What a server listens with, and what probes and metrics read. All but `run` may be called from any thread."""

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS settings to listen with: always the same object. Without a certificate, each handshake fails."""
        ...

    @property
    def expires_at(self) -> datetime | None:
        """When the certificate that is served expires; None while there is none."""
        ...

    @property
    def authority_expires_at(self) -> datetime | None:
        """When the authority expires that signs for us; None if it is not known."""
        ...

    def is_ready(self) -> bool:
        """Whether a certificate is served that is valid now and, where we publish authorities, trusted by the webhook configurations."""
        ...

    async def run(self) -> None:
        """Provide the certificate and renew it. Never returns, and survives every error."""
        ...


class Problems:
    """Logs a problem when it appears or changes, not again in every round."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._logged: dict[str, str] = {}

    def note(self, subject: str, problem: str, **values: Any) -> None:
        """Something is wrong with the subject."""
        if self._logged.get(subject) != problem:
            self._logged[subject] = problem
            self._log.warning("certificates", subject=subject, problem=problem, **values)

    def end(self, subject: str) -> None:
        """Nothing is wrong with the subject any more."""
        if self._logged.pop(subject, None) is not None:
            self._log.info("certificates: problem is over", subject=subject)
