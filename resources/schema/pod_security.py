"""Pod security: the rules for security contexts, for the namespaces of the host, and for the operating system."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from resources.schema.issues import Issue, Path
from resources.schema.pod_checks import Fields, forbidden, invalid, missing, part, size, text
from resources.schema.pod_containers import Placed, containers_of

WINDOWS: Final = "cannot be set for a windows pod"
POD_FIELDS: Final = ("hostUsers", "shareProcessNamespace")
HOST_FLAGS: Final = ("hostPID", "hostIPC")
POD_CONTEXT: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
"""What the security context of a Windows pod must not have."""
CONTAINER_CONTEXT: Final = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
"""The same for its containers."""
NET_SYSCTLS: Final = ("net.",)
IPC_SYSCTLS: Final = ("kernel.msg", "fs.mqueue.")
IPC_SYSCTL: Final = ("kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced")
LONGEST_PROFILE: Final = 4095
LONGEST_CREDENTIAL: Final = 64 * 1024
LONGEST_DOMAIN: Final = 255
LONGEST_USER: Final = 104
USER_CHARACTERS: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
NETBIOS: Final = re.compile(r'[^\\/:*?"<>|.]{1,15}')
DOMAIN: Final = re.compile(r"[0-9A-Za-z]{1,63}(?:-[0-9A-Za-z]{0,63}|\.[0-9A-Za-z]{1,63}){0,120}")


def seccomp(fields: Fields, path: Path) -> Iterator[Issue]:
    """A profile of the node is named for that type only."""
    return _profile(fields, path, "seccomp")


def app_armor(fields: Fields, path: Path) -> Iterator[Issue]:
    """The same for AppArmor, whose profiles are names and no files."""
    yield from _profile(fields, path, "AppArmor")
    profile = text(fields, "localhostProfile")
    if text(fields, "type") != "Localhost" or fields.get("localhostProfile") is None:
        return
    at = (*path, "localhostProfile")
    if profile != profile.strip():
        yield invalid(at, profile, "must not be padded with whitespace")
    elif not profile:
        yield missing(at, "must be set when AppArmor type is Localhost")
    elif len(profile) > LONGEST_PROFILE:
        yield invalid(at, profile, f"may not be more than {LONGEST_PROFILE} bytes")


def _profile(fields: Fields, path: Path, what: str) -> Iterator[Issue]:
    type_, profile, at = text(fields, "type"), fields.get("localhostProfile"), (*path, "localhostProfile")
    if type_ == "Localhost" and profile is None:
        yield missing(at, f"must be set when {what} type is Localhost")
    elif type_ and type_ != "Localhost" and profile is not None:
        yield invalid(at, profile, f"can only be set when {what} type is Localhost")
    elif type_ == "Localhost" and what == "seccomp" and isinstance(profile, str):
        if profile.startswith("/"):
            yield invalid(at, profile, "must be a relative path")
        if ".." in profile.split("/"):
            yield invalid(at, profile, "must not contain '..'")


def container_context(fields: Fields, path: Path) -> Iterator[Issue]:
    """A privileged container can raise its privileges, and one that can administer the system as well."""
    if fields.get("allowPrivilegeEscalation") is not False:
        return
    at = (*path, "allowPrivilegeEscalation")
    if fields.get("privileged") is True:
        yield invalid(at, False, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
    added = part(fields, "capabilities").get("add")
    if isinstance(added, list | tuple) and "CAP_SYS_ADMIN" in added:
        yield invalid(at, False, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")


def windows_options(fields: Fields, path: Path) -> Iterator[Issue]:
    """The user and the credentials of a Windows container have their form."""
    credential = fields.get("gmsaCredentialSpec")
    if isinstance(credential, str) and not 0 < len(credential) <= LONGEST_CREDENTIAL:
        message = "gmsaCredentialSpec size must be under 64 KiB" if credential else "gmsaCredentialSpec cannot be an empty string"
        yield invalid((*path, "gmsaCredentialSpec"), credential, message)
    name = fields.get("runAsUserName")
    if isinstance(name, str):
        yield from (invalid((*path, "runAsUserName"), name, f"runAsUserName{message}") for message in _user_faults(name))


def _user_faults(name: str) -> Iterator[str]:
    """What is wrong with `USER` or `DOMAIN\\USER`."""
    if not name:
        yield " cannot be an empty string"
        return
    if CONTROL.search(name):
        yield " cannot contain control characters"
        return
    domain, backslash, user = name.rpartition("\\")
    if "\\" in domain:
        yield " cannot contain more than one backslash"
        return
    if len(domain) > LONGEST_DOMAIN:
        yield f"'s Domain length must be under {LONGEST_DOMAIN + 1} characters"
    elif backslash and not (NETBIOS.fullmatch(domain) or DOMAIN.fullmatch(domain)):
        yield "'s Domain doesn't match the NetBios nor the DNS format"
    if not user:
        yield "'s User cannot be empty"
    elif len(user) > LONGEST_USER:
        yield f"'s User length must not be longer than {LONGEST_USER} characters"
    if user and not user.strip(". "):
        yield "'s User cannot contain only periods or spaces"
    if USER_CHARACTERS.search(user):
        yield "'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


def host_users(spec: Fields, path: Path, containers: Sequence[Placed]) -> Iterator[Issue]:
    """A pod with users of its own does not share the host's namespaces and has no devices; one without has its /proc masked."""
    apart = spec.get("hostUsers") is False
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if apart and spec.get(field) is True:
            yield forbidden((*path, field), "when `hostUsers` is false")
    for placed in containers:
        if apart and size(placed.fields, "volumeDevices"):
            yield forbidden((*placed.path, "volumeDevices"), "when `hostUsers` is false")
        if not apart and part(placed.fields, "securityContext").get("procMount") == "Unmasked":
            yield invalid((*placed.path, "securityContext", "procMount"), "Unmasked", "`hostUsers` must be false to use `Unmasked`")


def shared_namespaces(spec: Fields, path: Path) -> Iterator[Issue]:
    """Processes are shared with the host or within the pod, and settings of the host's kernel are not changed by pods that share it."""
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID") is True:
        message = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid((*path, "shareProcessNamespace"), True, message)
    sysctls = part(spec, "securityContext").get("sysctls")
    for number, sysctl in enumerate(sysctls if isinstance(sysctls, list | tuple) else ()):
        name = text(sysctl, "name").replace("/", ".") if isinstance(sysctl, dict) else ""
        at = (*path, "securityContext", "sysctls", number, "name")
        if spec.get("hostNetwork") is True and name.startswith(NET_SYSCTLS):
            yield invalid(at, name, "may not be specified when 'hostNetwork' is true")
        if spec.get("hostIPC") is True and (name in IPC_SYSCTL or name.startswith(IPC_SYSCTLS)):
            yield invalid(at, name, "may not be specified when 'hostIPC' is true")


def operating_system(spec: Fields, path: Path) -> Iterator[Issue]:
    """A pod says nothing that its operating system does not have."""
    system = part(spec, "os").get("name")
    if system == "linux":
        yield from _linux(spec, path)
    elif system == "windows":
        yield from _windows(spec, path)


def _linux(spec: Fields, path: Path) -> Iterator[Issue]:
    holders = ((path, spec), *((placed.path, placed.fields) for placed in containers_of(spec, path)))
    for at, holder in holders:
        if part(holder, "securityContext").get("windowsOptions") is not None:
            yield forbidden((*at, "securityContext", "windowsOptions"), "windows options cannot be set for a linux pod")


def _windows(spec: Fields, path: Path) -> Iterator[Issue]:
    set_ = [field for field in POD_FIELDS if spec.get(field) is not None] + [field for field in HOST_FLAGS if spec.get(field) is True]
    yield from (forbidden((*path, field), WINDOWS) for field in set_)
    if spec.get("resources") is not None:
        yield forbidden((*path, "resources"), "may not be set for a windows pod")
    context = part(spec, "securityContext")
    yield from (forbidden((*path, "securityContext", field), WINDOWS) for field in POD_CONTEXT if context.get(field) is not None)
    if size(context, "sysctls"):
        yield forbidden((*path, "securityContext", "sysctls"), WINDOWS)
    for placed in containers_of(spec, path):
        own = part(placed.fields, "securityContext")
        at = (*placed.path, "securityContext")
        yield from (forbidden((*at, field), WINDOWS) for field in CONTAINER_CONTEXT if own.get(field) is not None)


def host_processes(spec: Fields, path: Path, containers: Sequence[Placed]) -> Iterator[Issue]:
    """Processes of a Windows host: all containers or none, with the host's network."""
    of_pod = part(spec, "securityContext", "windowsOptions").get("hostProcess")
    running = 0
    for each in containers:
        own = part(each.fields, "securityContext", "windowsOptions").get("hostProcess")
        if isinstance(own, bool) and isinstance(of_pod, bool) and own != of_pod:
            at = (*each.path, "securityContext", "windowsOptions", "hostProcess")
            yield invalid(at, own, f"pod hostProcess value must be identical if both are specified, was {str(of_pod).lower()}")
        running += (of_pod if own is None else own) is True
    if running and running != len(containers):
        yield invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
    if running and spec.get("hostNetwork") is not True:
        yield invalid((*path, "hostNetwork"), False, "hostNetwork must be true if pod contains any hostProcess containers")
