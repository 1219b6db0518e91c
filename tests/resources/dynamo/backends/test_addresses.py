"""Addresses of the nodes of a service."""

import subprocess

from resources.dynamo.backends.addresses import LwsAddresses, addresses_of, by_kubelet, in_shell
from tests.resources.dynamo.pods.graphs import GROVE, LWS, graph_of, worker


def test_hosts_of_grove_are_written_for_a_shell_and_for_the_kubelet() -> None:
    graph = graph_of(worker("x"), "Decode")
    addresses = addresses_of(graph, graph.services[0], GROVE)

    assert addresses.leader(in_shell) == "$GROVE_PCSG_NAME-$GROVE_PCSG_INDEX-decode-ldr-0.$GROVE_HEADLESS_SERVICE"
    assert addresses.leader(by_kubelet) == "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-decode-ldr-0.$(GROVE_HEADLESS_SERVICE)"
    assert addresses.workers(2)[1] == "$GROVE_PCSG_NAME-$GROVE_PCSG_INDEX-decode-wkr-1.$GROVE_HEADLESS_SERVICE"
    assert (addresses.rank, addresses.needs_name_wait) == ("$((GROVE_PCLQ_POD_INDEX + 1))", False)


def test_hosts_of_lws_come_from_the_address_of_the_leader() -> None:
    graph = graph_of(worker("x"))
    addresses = addresses_of(graph, graph.services[0], LWS)

    assert (addresses.leader(in_shell), addresses.leader(by_kubelet)) == ("$LWS_LEADER_ADDRESS", "$(LWS_LEADER_ADDRESS)")
    assert (addresses.rank, addresses.needs_name_wait) == ("$LWS_WORKER_INDEX", True)


def test_a_shell_makes_of_them_the_names_that_lws_gives_its_pods() -> None:
    text = " ".join(LwsAddresses().workers(2))
    output = subprocess.run(
        ["/bin/sh", "-c", f"echo {text}"], env={"LWS_LEADER_ADDRESS": "g-decode-1-0.g-decode-1.ai"}, capture_output=True
    )

    assert output.stdout.decode().split() == ["g-decode-1-0-1.g-decode-1.ai", "g-decode-1-0-2.g-decode-1.ai"]
