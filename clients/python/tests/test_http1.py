"""The parser of responses: the same whatever the pieces in which bytes come."""

from __future__ import annotations

from typing import List, Tuple

import pytest

from prism_judge import ApiError, InvalidArgumentError, ProtocolError, UnavailableError
from prism_judge._http1 import Response, unwrap

PLAIN = b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\nContent-Type: text/plain\r\n\r\nhello\r\nyou!"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;ext=1\r\n\r\nyou!\r\n0\r\ntrailer: x\r\n\r\n"
)
CONTINUED = b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + PLAIN
CLOSED = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello\r\nyou!"
OLD = b"HTTP/1.0 200 OK\r\ncontent-length: 11\r\n\r\nhello\r\nyou!"


def parsed(pieces: List[bytes]) -> Response:
    found = Response()
    for piece in pieces:
        found.feed(piece)
    return found


@pytest.mark.parametrize(
    ("data", "reusable"),
    [(PLAIN, True), (CHUNKED, True), (CONTINUED, True), (CLOSED, False), (OLD, False)],
    ids=["plain", "chunked", "continued", "until the end", "HTTP/1.0"],
)
def test_a_response_is_read_whatever_its_pieces(data: bytes, reusable: bool) -> None:
    cuts = [[data[:at], data[at:]] for at in range(1, len(data))]
    cuts += [
        [data],
        [data[at : at + 1] for at in range(len(data))],
        [data[at : at + 7] for at in range(0, len(data), 7)],
    ]
    for pieces in cuts:
        found = parsed(pieces)
        if data == CLOSED:
            assert not found.done
            found.end()
        assert (found.done, found.status, found.body) == (True, 200, b"hello\r\nyou!")
        assert found.reusable == reusable


def test_a_response_without_a_body_is_whole_with_its_head() -> None:
    for head in (
        b"HTTP/1.1 204 No\r\n\r\n",
        b"HTTP/1.1 304 No\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ):
        found = parsed([head])
        assert (found.done, found.body, found.reusable) == (True, b"", True)


@pytest.mark.parametrize("data", [PLAIN, CHUNKED])
def test_bytes_behind_a_response_forbid_another_request(data: bytes) -> None:
    for more in (b"H", PLAIN):
        found = parsed([data + more])
        assert (found.done, found.body, found.reusable) == (True, b"hello\r\nyou!", False)


@pytest.mark.parametrize("data", [PLAIN, CHUNKED, PLAIN[:20]])
def test_an_early_end_is_no_answer(data: bytes) -> None:
    found = parsed([data[:-1]])
    with pytest.raises(UnavailableError, match="before its answer was complete"):
        found.end()


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x00\x18\x04\x00\x00\x00\x00\x00",  # HTTP/2 settings, as a gRPC port sends them
        b"SSH-2.0-OpenSSH",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello!\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * (70 << 10),
    ],
)
def test_what_is_no_http_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        parsed([data])


def answered(status: int, body: bytes, headers: Tuple[bytes, ...] = ()) -> Response:
    lines = [b"HTTP/1.1 %d So" % status, b"content-length: %d" % len(body), *headers]
    return parsed([b"\r\n".join(lines) + b"\r\n\r\n" + body])


def test_an_error_in_another_form_is_known_by_its_status() -> None:
    with pytest.raises(UnavailableError) as caught:
        unwrap(answered(503, b"<html>", (b"retry-after: 7",)), "http://host")
    assert (caught.value.retry_after_ms, caught.value.retryable) == (7000, True)
    with pytest.raises(ApiError, match="is it a prism-judge") as bad_gateway:
        unwrap(answered(502, b""), "http://host")
    assert (bad_gateway.value.code, bad_gateway.value.retryable) == ("UNKNOWN", False)
    with pytest.raises(InvalidArgumentError):
        unwrap(answered(400, b'{"error": "a text"}'), "http://host")


def test_a_redirect_is_not_followed() -> None:
    with pytest.raises(ProtocolError, match="redirect"):
        unwrap(answered(302, b"", (b"location: http://elsewhere",)), "http://host")


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (b"2", 2000),
        (b"Fri, 31 Dec 1999 23:59:59 GMT", 0),
        (b"soon", None),
        (b"-1", None),
        (b"", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: bytes, milliseconds: object) -> None:
    with pytest.raises(ApiError) as caught:
        unwrap(answered(429, b"{}", (b"retry-after: " + value,)), "http://host")
    assert caught.value.retry_after_ms == milliseconds


def test_the_body_says_the_pause_more_exactly_than_the_header() -> None:
    body = b'{"error": {"code": "RESOURCE_EXHAUSTED", "message": "full", "retry_after_ms": "1500"}}'
    with pytest.raises(ApiError) as caught:
        unwrap(answered(429, body, (b"retry-after: 2",)), "http://host")
    assert caught.value.retry_after_ms == 1500
