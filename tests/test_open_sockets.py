"""What is promised of tests that leave sockets open."""

import gc
import socket
import warnings

from tests.open_sockets import collected_if_open


def left_to_the_collector() -> None:
    """Open a socket, and lose it in a circle of references."""
    circle: list[object] = [socket.socket()]
    circle.append(circle)


def test_a_socket_that_is_left_to_the_collector_is_reported_at_the_end_of_the_test_that_opened_it() -> None:
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        with collected_if_open():
            left_to_the_collector()

    assert [each.category for each in reported] == [ResourceWarning]


def test_a_test_that_closes_its_sockets_costs_no_collection() -> None:
    before = gc.get_stats()[2]["collections"]
    with collected_if_open():
        socket.socket().close()

    assert gc.get_stats()[2]["collections"] == before
