"""Real captures with plain and with compiled loops: the same summary, and numba only for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from marin_profile.base.jit import COMPILED, PLAIN, forced
from real.captures import CPU8, GPU_CONV, GPU_GEMM, GPU_GTX, GPU_LEGACY, V6E, summarize

FILES = (
    f"{V6E}/host0.xplane.pb",
    f"{V6E}/host0.trace.json.gz",
    f"{CPU8}/cpu8.xplane.pb",
    f"{CPU8}/cpu8.trace.json.gz",
    f"{GPU_CONV}/tw003.xplane.pb",
    f"{GPU_CONV}/tw003.trace.json.gz",
    f"{GPU_GEMM}/tw003.xplane.pb",
    f"{GPU_LEGACY}/mi300x.xplane.pb",
    f"{GPU_GTX}/cyclops.xplane.pb",
)


@pytest.mark.parametrize("name", FILES)
def test_both_forms_give_the_same_summary(traces: Path, name: str) -> None:
    with forced(PLAIN):
        plain = summarize(traces / name)
    with forced(COMPILED):
        compiled = summarize(traces / name)
    assert plain.model_dump_json() == compiled.model_dump_json()


@pytest.mark.parametrize(
    ("flag", "name"), [("--xplane-file", FILES[0]), ("--trace-file", FILES[1])]
)
def test_a_small_capture_needs_no_numba(
    traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, name: str
) -> None:
    monkeypatch.delenv("MARIN_PROFILE_LOOPS", raising=False)
    command = ["summarize", flag, str(traces / name)]
    command += ["--output", str(tmp_path / "summary.json")]
    code = (
        "import sys; from marin_profile.cli import run\n"
        f"code = run({command!r})\n"
        "print(code, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "0 False"
