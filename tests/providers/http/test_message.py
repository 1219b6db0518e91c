"""Routes: which handler answers a path."""

import pytest

from providers.http.message import HttpResponse, handler_of
from tests.providers.http.talking import echo


@pytest.mark.parametrize(("path", "status"), [("/sets/a/b", 200), ("/sets/", 200), ("/sets", 404), ("/setsa/b", 404), ("/a/sets/", 404)])
def test_a_route_that_ends_with_a_slash_answers_everything_below_it(path: str, status: int) -> None:
    handler = handler_of({("GET", "/sets/"): echo}, "HEAD", path)

    assert (handler.status if isinstance(handler, HttpResponse) else 200) == status
