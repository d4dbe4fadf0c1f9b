"""A repository whose program takes as long as a constant of its commit says.

`train.py OUT` leaves a capture below OUT as JAX's profiler does, without JAX: its steps take
STEP_US, with run-to-run noise that the name of OUT alone seeds. `build.py` fails where BUILDS says
so.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path

TESTS = Path(__file__).parent

_CONFIG = """\
STEP_US = {step_us}
SPREAD = {spread}
BUILDS = {builds}
RUNS = {runs!r}
"""

_TRAIN = f"""\
import math, os, random, sys, time
from pathlib import Path
from config import RUNS, SPREAD, STEP_US

out = Path(sys.argv[1])
if RUNS == "hangs":
    time.sleep(3600)
if RUNS != "works":
    sys.exit("RESOURCE_EXHAUSTED: out of memory, token " + os.environ.get("TOKEN", "none"))
sys.path.insert(0, {str(TESTS)!r})
from fleet_captures import run_space

noise = random.Random(out.name).gauss(0.0, SPREAD)
step_us = round(STEP_US * math.exp(noise))
run_space("h", step_us=step_us, steps=6).write(
    out / "plugins/profile/2026_01_02_03_04_05/h.xplane.pb"
)
"""

_BUILD = """\
import sys
from config import BUILDS
sys.exit(0 if BUILDS else "error: no rule to make target")
"""


def git(folder: Path, *arguments: str, given: bytes | None = None) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", str(folder), *arguments],
        input=given,
        check=True,
        capture_output=True,
    )
    return done.stdout.decode()


def toy_repository(
    folder: Path,
    steps_us: Sequence[int],
    *,
    spread: float = 0.0,
    not_building: Collection[int] = (),
    failing: Collection[int] = (),
    hanging: Collection[int] = (),
) -> list[str]:
    """A commit for each step time, on `main`, which is checked out; the commits' hashes."""
    configs = [
        _CONFIG.format(
            step_us=step_us,
            spread=spread,
            builds=at not in not_building,
            runs="fails" if at in failing else "hangs" if at in hanging else "works",
        )
        for at, step_us in enumerate(steps_us)
    ]
    return repository(
        folder, [{"config.py": text} for text in configs], {"train.py": _TRAIN, "build.py": _BUILD}
    )


def repository(folder: Path, changes: Sequence[dict[str, str]], first: dict[str, str]) -> list[str]:
    """A commit for each of the changes (file name -> content), the first one with `first` too."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    stream = b""
    for at, change in enumerate(changes):
        message = f"Change {at}".encode()
        stream += b"commit refs/heads/main\ncommitter n <e@x> %d +0000\n" % (
            1_700_000_000 + at
        ) + b"data %d\n%s\n" % (len(message), message)
        for name, text in ((first if at == 0 else {}) | change).items():
            content = text.encode()
            stream += b"M 644 inline %s\ndata %d\n%s\n" % (name.encode(), len(content), content)
    git(folder, "fast-import", "--quiet", given=stream)
    git(folder, "checkout", "-q", "main")
    return git(folder, "rev-list", "--reverse", "main").split()


def slower_from(
    first_bad: int, commits: int = 33, by: float = 1.3, step_us: int = 10_000
) -> list[int]:
    """Step times of so many commits."""
    return [round(step_us * (by if at >= first_bad else 1.0)) for at in range(commits)]
