"""numba in a process of our own, without what no loop uses."""

from __future__ import annotations

import subprocess
import sys

from patience import PATIENCE

OWN_PROCESS = """
import sys
from marin_profile.base.jit import forced, jit
from marin_profile.base.startup import ready_to_read

@jit
def total(values):
    result = 0
    for value in values:
        result += value
    return result

import numpy as np

ready_to_read()
with forced("compiled"):
    print(total(np.arange(5)))
print(sorted({"scipy", "cffi"} & set(sys.modules)))
"""


def test_numba_loads_neither_scipy_nor_cffi_and_hides_neither():
    found = subprocess.run(
        [sys.executable, "-c", OWN_PROCESS], capture_output=True, text=True, timeout=PATIENCE
    )
    assert found.stdout.split("\n")[:2] == ["10", "[]"], found.stderr
