"""Probes: `/healthz`, `/livez` and `/readyz`, which answer as those of a kube-apiserver do."""

from collections.abc import Iterator, Sequence

from enginectl.serving.checks import Health, HealthCheck
from providers.serving.message import Handler, HttpResponse, IncomingRequest, Routes

FAILED = 500
"""The status of a failed probe, as kube-apiserver answers it."""
NO_STORE = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}


def probe_routes(liveness: Sequence[HealthCheck], readiness: Sequence[HealthCheck]) -> Routes:
    """The probes, and each check by itself beneath them: `/readyz/caches`.

    `/healthz` and `/livez` are the same: whether the process works, so that a kubelet should leave it alone. `/readyz`: whether it should
    get requests. `?verbose` lists the checks, `?exclude=caches` leaves some out, separated by commas.
    """
    routes: dict[tuple[str, str], Handler] = {}
    for name, checks in (("healthz", liveness), ("livez", liveness), ("readyz", readiness)):
        routes["GET", f"/{name}"] = probe(name, checks)
        routes.update({("GET", f"/{name}/{check.name}"): probe(name, [check]) for check in checks})
    return routes


def probe(name: str, checks: Sequence[HealthCheck]) -> Handler:
    """Answers 200 if all checks are good, otherwise 500 and the list of all checks."""

    async def answer(request: IncomingRequest) -> HttpResponse:
        excluded = set(filter(None, request.query.get("exclude", "").split(",")))
        health = {check.name: check.judge() for check in checks if check.name not in excluded}
        is_good = all(each.is_good for each in health.values())
        if is_good and "verbose" not in request.query:
            return HttpResponse(body=b"ok", headers=NO_STORE)
        ignored = [check.name for check in checks if check.name in excluded]
        lines = (*_lines(health, ignored), f"{name} check {'passed' if is_good else 'failed'}", "")
        return HttpResponse(200 if is_good else FAILED, "\n".join(lines).encode(), headers=NO_STORE)

    return answer


def _lines(health: dict[str, Health], excluded: Sequence[str]) -> Iterator[str]:
    """A line for each check, as `kubectl get --raw '/readyz?verbose'` shows them."""
    for name, each in health.items():
        state = "[+]" if each.is_good else "[-]"
        word = "ok" if each.is_good else "failed"
        yield f"{state}{name} {word}{f': {each.message}' if each.message else ''}"
    yield from (f"[+]{name} excluded: ok" for name in excluded)
