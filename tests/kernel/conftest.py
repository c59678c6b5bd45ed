"""Kernels for the tests, gone when a test ends."""

import pytest
from client import Kernel


@pytest.fixture
def start_kernel(tmp_path):
    """Starts kernels that share one temporary folder and are gone after the test."""
    kernels = []

    def start():
        kernels.append(Kernel(tmp_path))
        return kernels[-1]

    yield start
    for kernel in kernels:
        kernel.shut_down()


@pytest.fixture
def kernel(start_kernel):
    return start_kernel()
