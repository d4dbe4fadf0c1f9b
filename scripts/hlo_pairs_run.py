"""One side of a pair, run and captured: `python scripts/hlo_pairs_run.py CASE before|after FOLDER`.

The captures go into FOLDER, the text of the compiled program beside it, as FOLDER.hlo.txt. The
variable PAIR_DEVICES says how many CPU devices the program has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# One thread a device: more of them would share what one of them leaves.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    f"--xla_force_host_platform_device_count={os.environ.get('PAIR_DEVICES', '1')} "
    "--xla_cpu_multi_thread_eigen=false"
)

import jax
from hlo_pairs_cases import CASES
from hlo_pairs_held_out import HELD_OUT
from hlo_pairs_mixed import MIXED
from hlo_pairs_programs import Program

STEPS = 10
WARM = 2


def run_step(program: Program, carried: tuple[Any, ...]) -> tuple[Any, ...]:
    """What the next step takes first."""
    found = program.run(*carried, *program.arguments[program.carried :])
    jax.block_until_ready(found)
    if program.carried == 0:
        return ()
    return found[: program.carried] if isinstance(found, tuple) else (found,)


def capture(program: Program, folder: Path) -> None:
    carried = program.arguments[: program.carried]
    for _ in range(WARM):
        carried = run_step(program, carried)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with jax.profiler.trace(str(folder), profiler_options=options):
        for number in range(STEPS):
            # A marker begins when it is made.
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                carried = run_step(program, carried)


def main() -> None:
    name, side, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    (case,) = (one for one in (*CASES, *HELD_OUT, *MIXED) if one.name == name)
    jax.config.update("jax_enable_x64", case.x64)
    program = case.build(side == "after")
    compiled = program.run.lower(*program.arguments).compile()
    folder.mkdir(parents=True, exist_ok=True)
    Path(f"{folder}.hlo.txt").write_text(compiled.as_text())
    capture(program, folder)


if __name__ == "__main__":
    main()
