"""Forks. They run in processes of their own, so that other tests' threads are not forked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from http_server import HttpServer

HERE = Path(__file__).parent


def run(script: str, url: str) -> str:
    """Runs a script of this folder and gives what it says."""
    done = subprocess.run([sys.executable, str(HERE / script), url], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_sixty_forks_while_four_threads_score(http: HttpServer) -> None:
    assert run("fork_http.py", http.url) == "60 children, all well\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_child_of_a_process_with_grpc_is_told_so() -> None:
    pytest.importorskip("grpc")
    from grpc_server import GrpcServer

    server = GrpcServer()
    assert run("fork_grpc.py", server.url) == "the child was told, the parent goes on\n"
    server.close()
