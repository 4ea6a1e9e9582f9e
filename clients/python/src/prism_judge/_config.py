"""What a client is made of: plain values, so that a client can be pickled."""

from __future__ import annotations

import ipaddress
import math
import os
import ssl
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Optional, Tuple

from .errors import InvalidInputError

DEFAULT_URL = "http://127.0.0.1:8080"
_PORTS = {"http": 80, "https": 443, "grpc": 50051, "grpcs": 443}


@dataclass(frozen=True)
class Config:
    """The arguments of a client, checked. ``parse`` makes it."""

    url: str
    scheme: str
    host: str
    port: int
    path: str
    """Before ``/v1/...``; empty or with a leading slash."""
    api_key: Optional[str] = field(repr=False)
    timeout: float
    ca_file: Optional[str]
    cert_file: Optional[str]
    key_file: Optional[str]
    concurrency: int
    chunk_bytes: int

    @property
    def tls(self) -> bool:
        return self.scheme in ("https", "grpcs")

    @property
    def grpc(self) -> bool:
        return self.scheme in ("grpc", "grpcs")

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def ssl_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.cert_file is not None:
            context.load_cert_chain(self.cert_file, self.key_file)
        return context

    def proxy(self) -> Optional[Proxy]:
        """The proxy that the environment names for this server; never one for this machine itself."""
        if is_loopback(self.host) or urllib.request.proxy_bypass(self.host):
            return None
        url = urllib.request.getproxies().get(self.scheme)
        if not url:
            return None
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise InvalidInputError(f"{self.scheme}_proxy", "it must be http://HOST:PORT (a proxy that speaks HTTP)")
        login = None
        if parts.username is not None:
            login = (urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or ""))
        return Proxy(parts.hostname, parts.port or 80, login)


@dataclass(frozen=True)
class Proxy:
    host: str
    port: int
    login: Optional[Tuple[str, str]] = field(repr=False)


def parse(
    url: Optional[str],
    *,
    api_key: Optional[str],
    timeout: float,
    ca_file: Optional[str],
    cert_file: Optional[str],
    key_file: Optional[str],
    concurrency: int,
    chunk_bytes: int,
) -> Config:
    """Fills in what the environment says and checks everything."""
    if url is None:
        url = os.environ.get("PRISM_JUDGE_URL") or DEFAULT_URL
    if api_key is None:
        api_key = os.environ.get("PRISM_JUDGE_API_KEY") or None
    if not isinstance(url, str):
        raise InvalidInputError("url", f"it must be a str, not {type(url).__name__}")
    scheme, host, port, path = _split(url)
    if api_key is not None and (not isinstance(api_key, str) or not api_key.isascii() or not api_key.isprintable()):
        # The key itself stays out of the message.
        raise InvalidInputError("api_key", "it must be a str of printable ASCII characters")
    if key_file is not None and cert_file is None:
        raise InvalidInputError("key_file", "it needs cert_file")
    if (ca_file is not None or cert_file is not None) and scheme not in ("https", "grpcs"):
        name = "cert_file" if ca_file is None else "ca_file"
        raise InvalidInputError(name, f"it needs https:// or grpcs://, and the url is {scheme}://")
    return Config(
        url=url,
        scheme=scheme,
        host=host,
        port=port,
        path=path,
        api_key=api_key,
        timeout=seconds(timeout),
        ca_file=ca_file,
        cert_file=cert_file,
        key_file=key_file,
        concurrency=_positive("concurrency", concurrency),
        chunk_bytes=_positive("chunk_bytes", chunk_bytes),
    )


def seconds(timeout: object) -> float:
    """A timeout that is one."""
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not math.isfinite(timeout) or timeout <= 0:
        raise InvalidInputError("timeout", f"it must be a finite number of seconds above 0, not {timeout!r}")
    return float(timeout)


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str) -> Tuple[str, str, int, str]:
    wanted = "it must be http://, https://, grpc:// or grpcs:// with a host"
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidInputError("url", f"{wanted}: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InvalidInputError("url", wanted)
    if parts.username is not None or parts.password is not None:
        raise InvalidInputError("url", "it must not hold a user or a password: use api_key")
    if parts.query or parts.fragment or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInputError("url", "it must be a scheme, a host, a port and a path in ASCII, and nothing else")
    path = parts.path.rstrip("/")
    if path and parts.scheme in ("grpc", "grpcs"):
        raise InvalidInputError("url", "gRPC takes no path")
    return parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port, path


def _positive(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidInputError(name, f"it must be a whole number of at least 1, not {value!r}")
    return value
