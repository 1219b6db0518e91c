"""TensorRT-LLM: the leader starts one process for each GPU of all nodes with mpirun over SSH; workers run an SSH server."""

import re
import shlex
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.resource import Body
from resources.base.fields import mappings
from resources.dynamo.backends.addresses import in_shell
from resources.dynamo.backends.command import command_of, with_joined_arguments
from resources.dynamo.backends.faults import PodFault
from resources.dynamo.backends.kubelet import escaped
from resources.dynamo.backends.port import RANK, Placement, RewrittenContainer, without_probes
from resources.dynamo.backends.script import UnreadableScript, has_commands, read_script
from resources.dynamo.backends.shell import SHELL, QuotedWords, quoted
from resources.dynamo.backends.volume_names import volume_name
from resources.dynamo.model.graph import Role

PORT = 2222
KEYS = "/ssh-pk"
KEEP_FULL_NAMES = {"name": "OMPI_MCA_orte_keep_fqdn_hostnames", "value": "1"}
READINESS = {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 20, "periodSeconds": 20, "timeoutSeconds": 5, "failureThreshold": 10}
NAME_TIMEOUT = 300
"""How long the leader waits for the names of workers, in seconds."""
EXPORTED = (
    "CUDA_VISIBLE_DEVICES HF_DATASETS_CACHE HF_ENDPOINT HF_HOME HF_TOKEN HOME HUGGING_FACE_HUB_TOKEN LD_LIBRARY_PATH MODEL_PATH NCCL_DEBUG"
    " NCCL_IB_DISABLE NCCL_P2P_DISABLE PATH PYTHONPATH TENSORRT_LLM_CACHE_DIR TOKENIZERS_PARALLELISM TRANSFORMERS_CACHE USER"
).split()
"""Variables that mpirun passes to all processes besides those of the container."""
EXPORTED_NOW = (*EXPORTED, "TRTLLM_USE_UCX_KVCACHE")
"""The same from the third form of pods on."""
NOT_EXPORTED = ("_", "HOSTNAME", "OLDPWD", "PWD", "SHLVL", "GROVE_[^=]*", "LWS_[^=]*")
"""Patterns of variables that are a pod's own: other nodes must not have the leader's."""
ENVIRONMENT = "/opt/dynamo/venv/bin/activate"
"""The virtual environment of images up to 0.6; from the third form of pods on it is activated where there is one."""
HOST_KEYS = ("rsa", "ecdsa", "ed25519")

_CLIENT = (
    'mkdir -p "$HOME/.ssh"',
    f"ls -la {KEYS}/",
    f'cp {KEYS}/private.key "$HOME/.ssh/id_rsa"',
    f'cp {KEYS}/private.key.pub "$HOME/.ssh/id_rsa.pub"',
    f'cp {KEYS}/private.key.pub "$HOME/.ssh/authorized_keys"',
    'chmod 600 "$HOME/.ssh/id_rsa" "$HOME/.ssh/authorized_keys"',
    'chmod 644 "$HOME/.ssh/id_rsa.pub" "$HOME/.ssh/authorized_keys"',
    f"""printf 'Host *\\nIdentityFile "%s/.ssh/id_rsa"\\nStrictHostKeyChecking no\\nPort {PORT}\\n' "$HOME" """
    '> "$HOME/.ssh/config"',
)
_OPEN_KEYS = 'chmod 644 "$HOME/.ssh/id_rsa.pub" "$HOME/.ssh/authorized_keys"'
_CLIENT_NOW = tuple('chmod 644 "$HOME/.ssh/id_rsa.pub"' if line == _OPEN_KEYS else line for line in _CLIENT)
"""From the third form of pods on only the public key is readable by others."""
_SERVER = (
    *(f"""ssh-keygen -t {kind} -f "$HOME/.ssh/host_keys/ssh_host_{kind}_key" -N ''""" for kind in HOST_KEYS),
    f"{{ printf 'Port {PORT}\\n'; "
    + "".join(f"""printf 'HostKey "%s/.ssh/host_keys/ssh_host_{kind}_key"\\n' "$HOME"; """ for kind in HOST_KEYS)
    + """printf 'PidFile "%s/.ssh/run/sshd.pid"\\n' "$HOME"; """
    "printf 'PermitRootLogin yes\\nPasswordAuthentication no\\nPubkeyAuthentication yes\\n'; "
    """printf 'AuthorizedKeysFile "%s/.ssh/authorized_keys"\\n' "$HOME"; } > "$HOME/.ssh/sshd_config\"""",
    # Only a server that runs as root needs this directory, and only root may create it.
    '{ mkdir -p /run/sshd || [ "$(id -u)" != "0" ]; }',
    '/usr/sbin/sshd -D -f "$HOME/.ssh/sshd_config"',
)
_STRICT = "PubkeyAuthentication yes\\n'"
_SERVER_NOW = tuple(line.replace(_STRICT, "PubkeyAuthentication yes\\nStrictModes no\\n'") for line in _SERVER)
"""From the third form of pods on the server accepts a home that others may write, as volumes are."""


class TensorRtLlm(Struct, frozen=True):
    """MPI over SSH on port 2222. Workers keep one probe: their SSH server must answer."""

    cache_variable: str = ""
    cache_directory: str = ""

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container with the key pair mounted and the leader's or the worker's line. Raises `PodFault` without a number of GPUs."""
        if not placement.gpus and not placement.is_of_role:
            path = ("spec", "services", placement.service, "resources", "limits", "gpu")
            raise PodFault(path, "the number of GPUs of one node is required: TensorRT-LLM on several nodes starts one process for each")
        volume = {"name": volume_name(placement.ssh_secret), "secret": {"secretName": placement.ssh_secret, "defaultMode": 0o644}}
        keys = {"name": volume["name"], "mountPath": KEYS, "readOnly": True}
        envs = [env for env in mappings(container.get("env")) if env.get("name") != KEEP_FULL_NAMES["name"]]
        mounts = [*mappings(container.get("volumeMounts")), keys]
        connected = {**container, "volumeMounts": mounts, "env": [*envs, KEEP_FULL_NAMES]}
        if placement.is_of_role:
            probe = {"readinessProbe": READINESS} if placement.role is Role.WORKER else {}
            changed = RewrittenContainer({**connected, **probe}, (volume,))
        elif placement.role is Role.WORKER:
            changed = RewrittenContainer(_server(connected, placement), (volume,))
        else:
            changed = _launcher(connected, placement, (placement.gpus or 0) * placement.nodes, volume)
        return replace(changed, shared_envs=(KEEP_FULL_NAMES,), shared_mounts=(keys,))


def _server(container: Body, placement: Placement) -> dict[str, Any]:
    client, server = (_CLIENT_NOW, _SERVER_NOW) if placement.knows_ranks else (_CLIENT, _SERVER)
    parts = ('mkdir -p "$HOME/.ssh" "$HOME/.ssh/host_keys" "$HOME/.ssh/run"', *client[1:], *server)
    return {**without_probes(container), "readinessProbe": READINESS, "command": list(SHELL), "args": [" && ".join(parts)]}


def _launcher(container: Body, placement: Placement, processes: int, volume: Body) -> RewrittenContainer:
    container = with_joined_arguments(container)
    command = command_of(container)
    if not command.words or (command.is_shell and not has_commands(command.text)):
        reason = "its command stays as it is, because its shell has no script that mpirun could start"
        return RewrittenContainer(container, (volume,), warnings=(placement.warning(reason),))
    launched = _launched(container, placement)
    workers = placement.addresses.workers(placement.nodes - 1)
    hosts = ",".join((placement.addresses.leader(in_shell), *workers))
    wait = [_name_wait(workers)] if placement.addresses.needs_name_wait else []
    names = _exported(launched.envs, placement)
    is_extended = placement.is_recorded and bool(container.get("envFrom"))
    exports = [_exports(names), *(['"$@"'] if is_extended else [])]
    mpirun = _mpirun(processes, hosts, " ".join(exports), launched.text)
    client = _CLIENT_NOW if placement.knows_ranks else _CLIENT
    parts = (*client, *wait, *([_further_exports([*names, *([RANK] if placement.knows_ranks else [])])] if is_extended else []), mpirun)
    changed = {**container, "command": list(SHELL), "args": [" && ".join(parts)], "env": list(launched.envs)}
    return RewrittenContainer(changed, (volume,))


def _exported(envs: Iterable[Body], placement: Placement) -> list[str]:
    """The names of the variables that all processes get: fixed ones and those of the container, but not the rank of the leader."""
    declared = {str(env.get("name", "")) for env in envs}
    return sorted({*EXPORTED_NOW, *declared} - {RANK} if placement.knows_ranks else {*EXPORTED, *declared})


def _launched(container: Body, placement: Placement) -> QuotedWords:
    """What mpirun starts: one word for `bash -c`, with the user's command behind TensorRT-LLM's launcher.

    A script that does more than start one program is started by its own shell, for the launcher starts programs.
    """
    command = command_of(container)
    is_plain = command.is_shell and _is_program_call(command.text)
    envs = mappings(container.get("env"))
    original = QuotedWords(command.text.strip(), tuple(envs)) if is_plain else quoted(command.words, envs)
    if placement.knows_ranks:
        activation = f"{{ [ ! -f {ENVIRONMENT} ] || source {ENVIRONMENT}; }}"
    else:
        activation = f"source {ENVIRONMENT}"
    return quoted((f"{activation} && trtllm-llmapi-launch {original.text}",), original.envs)


def _is_program_call(script: str) -> bool:
    try:
        return read_script(script.strip()).is_program_call and not script.rstrip().endswith("\\")
    except UnreadableScript:
        return False


def _exports(names: Iterable[str]) -> str:
    return " ".join(f"-x {escaped(shlex.quote(name))}" for name in names)


def _further_exports(names: Iterable[str]) -> str:
    """Sets the positional parameters to `-x NAME` for each variable of the environment besides these: `envFrom` brings variables whose
    names the manifest does not have.

    Entries of the environment end with a zero byte, so a line break in a value begins no name. mpirun splits names at a semicolon.
    """
    known = "|".join((*map(_escaped_pattern, names), *NOT_EXPORTED))
    lines = "env -0 | tr '\\n\\0' '\\1\\n' | LC_ALL=C cut -s -d = -f 1"
    others = f"LC_ALL=C grep -vxE {escaped(shlex.quote(f'({known})|.*;.*'))}"
    words = r"""LC_ALL=C sed -e "s/'/'\\\\''/g" -e "s/.*/-x '&'/" | tr '\n' ' '"""
    return f'eval "set -- $({lines} | {others} | {words})"'


def _escaped_pattern(name: str) -> str:
    """A name as an extended regular expression."""
    return re.sub(r"[.^$*+?()\[\]{}|\\]", r"\\\g<0>", name)


def _mpirun(processes: int, hosts: str, exports: str, launched: str) -> str:
    as_root = '$([ "$(id -u)" = "0" ] && echo --allow-run-as-root)'
    remote_shell = f'--mca plm_rsh_args "-p {PORT} -o StrictHostKeyChecking=no -i $HOME/.ssh/id_rsa"'
    return f"mpirun {as_root} --oversubscribe -n {processes} -H {hosts} --mca pml ob1 {remote_shell} {exports} bash -c {launched}"


def _name_wait(workers: Iterable[str]) -> str:
    """Wait until the names of all workers can be looked up."""
    return (
        f"{{ deadline=$(($(date +%s) + {NAME_TIMEOUT})); for worker in {' '.join(workers)}; do"
        ' until getent hosts "$worker" > /dev/null 2>&1; do'
        ' if [ "$(date +%s)" -ge "$deadline" ]; then'
        f' echo "no address for $worker after {NAME_TIMEOUT} seconds" >&2; exit 1; fi;'
        " sleep 2; done; done; }"
    )
