"""The scoreboard's made capture, and what is in it by construction.

Four TPU devices train for twelve steps (10 to 21); the capture ends inside step 22. Times in
microseconds from the start of a step, the same in each:

    fusion.1 0-100 | all-gather-start.1 -101 | fusion.4 -300 | all-gather-done.1 -350
    | fusion.2 -650 (device 3: -750) | all-reduce.1 -850 | fusion.3 -900 | load_batch until 1000

Device 3 is late in each all-reduce. An evaluation of 500 runs after steps 13 and 17; the loader
takes 1000 longer after step 19. So a period is 1000, but 1500 for steps 13 and 17, and 2000 for
step 19.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from scoreboard_truth import (
    GBPS,
    NO_MEMORY,
    NO_SUCH,
    NO_TRANSFERS,
    NOT_HELD,
    RATIO,
    Name,
    Nothing,
    Ranked,
    Truths,
    Value,
    count,
    name,
    share,
    size_of,
    us,
)

from builders_xspace import Space, Stat, Tpu, Unsigned

DEVICES = 4
LATE = 3
FIRST, LAST, CUT = 10, 21, 22
EVALUATED = (13, 17)
STALLED = 19
EVALUATION = 500
STALL = 1000
PERIOD = 1000
PEAK_TFLOPS = 918.0
PEAK_GBS = 1640.0
GRADIENT_BYTES = 4 * 1048576
TRAIN, EVAL = 7, 9

_GROUPS = "replica_groups={{0,1,2,3}}"
_TEXTS = {
    "all-gather-start.1": "%all-gather-start.1 = (f32[131072]{0}, f32[524288]{0}) "
    f"all-gather-start(f32[131072]{{0}} %p), {_GROUPS}, dimensions={{0}}",
    "all-gather-done.1": "%all-gather-done.1 = f32[524288]{0} "
    "all-gather-done((f32[131072]{0}, f32[524288]{0}) %all-gather-start.1)",
    "all-reduce.1": "%all-reduce.1 = f32[1048576]{0} all-reduce(f32[1048576]{0} %fusion.2), "
    f"{_GROUPS}, to_apply=%add",
}
# Name: category, scope, flops, bytes.
_OPS: dict[str, tuple[str, str, int, int]] = {
    "fusion.1": (
        "convolution fusion",
        "jit(train_step)/jvp(Model)/embed/dot_general",
        55_000_000_000,
        5_000_000,
    ),
    "all-gather-start.1": (
        "all-gather-start",
        "jit(train_step)/jvp(Model)/mlp/all_gather",
        0,
        0,
    ),
    "fusion.4": (
        "convolution fusion",
        "jit(train_step)/jvp(Model)/mlp/dot_general",
        109_450_000_000,
        10_000_000,
    ),
    "all-gather-done.1": (
        "all-gather-done",
        "jit(train_step)/jvp(Model)/mlp/all_gather",
        0,
        2_097_152,
    ),
    "fusion.2": (
        "convolution fusion",
        "jit(train_step)/transpose(jvp(Model))/mlp/dot_general",
        200_000_000_000,
        20_000_000,
    ),
    "all-reduce.1": (
        "all-reduce",
        "jit(train_step)/sync_gradients/psum",
        1_048_576,
        GRADIENT_BYTES,
    ),
    "fusion.3": (
        "loop fusion",
        "jit(train_step)/optimizer/adam/add",
        35_000_000,
        70_000_000,
    ),
    "fusion.9": (
        "convolution fusion",
        "jit(eval_step)/Model/mlp/dot_general",
        275_000_000_000,
        20_000_000,
    ),
}
SOURCE = "train.py:42"


def step_ops(device: int) -> list[tuple[str, int, int]]:
    """(op, start, length) of one training step."""
    arrives = 750 if device == LATE else 650
    return [
        ("fusion.1", 0, 100),
        ("all-gather-start.1", 100, 1),
        ("fusion.4", 101, 199),
        ("all-gather-done.1", 300, 50),
        ("fusion.2", 350, arrives - 350),
        ("all-reduce.1", arrives, 850 - arrives),
        ("fusion.3", 850, 50),
    ]


def starts() -> dict[int, int]:
    """The start of each step, the cut one included."""
    at, found = 0, {}
    for step in range(FIRST, CUT + 1):
        found[step] = at
        at += PERIOD + EVALUATION * (step in EVALUATED) + STALL * (step == STALLED)
    return found


def made_space() -> Space:
    space = Space("made")
    begun = starts()
    _host(space, begun)
    for device in range(DEVICES):
        tpu = space.tpu(
            device,
            device_type_string="TPU v6 Lite",
            peak_teraflops_per_second=PEAK_TFLOPS,
            peak_hbm_bw_gigabytes_per_second=PEAK_GBS,
        )
        for step, at in begun.items():
            ops = step_ops(device)[:1] if step == CUT else step_ops(device)
            length = ops[-1][1] + ops[-1][2]
            lasts = length if step == CUT else begun[step + 1] - at - 1
            tpu.step(step, at, lasts)
            tpu.module(f"jit_train_step({TRAIN})", at, length, run_id=step)
            for one, start, duration in ops:
                _op(tpu, one, at + start, duration, TRAIN, step)
            if step in EVALUATED:
                after = at + PERIOD
                tpu.module(f"jit_eval_step({EVAL})", after, EVALUATION, run_id=100 + step)
                _op(tpu, "fusion.9", after, EVALUATION, EVAL, 100 + step)
    return space


def _op(tpu: Tpu, op: str, start: int, length: int, program: int, run: int) -> None:
    category, scope, flops, size = _OPS[op]
    shared: dict[str, Stat] = {
        "hlo_category": category,
        "tf_op": f"{scope}:",
        "program_id": Unsigned(program),
        "symbol_id": Unsigned(list(_OPS).index(op) + 1),
        "flops": flops,
        "model_flops": flops,
        "bytes_accessed": size,
        "raw_bytes_accessed": size,
    }
    if op == "fusion.2":
        shared["source"] = SOURCE
    text = _TEXTS.get(op, f"%{op} = f32[8]{{0}} fusion(f32[8]{{0}} %p)")
    tpu.event("XLA Ops", text, start, length, display=op, shared=shared, run_id=run)


def _host(space: Space, begun: dict[int, int]) -> None:
    """Each step is launched inside its marker; the loader runs between the markers."""
    host = space.host()
    for step, at in begun.items():
        host.marker(step, at - 2, 4)
        host.call("PJRT_LoadedExecutable_Execute", at - 1, 1, run_id=step)
        if step == CUT:
            continue
        host.call("load_batch", at + 900, 98 + STALL * (step == STALLED))
        if step in EVALUATED:
            host.call("PJRT_LoadedExecutable_Execute", at + PERIOD - 1, 1, run_id=100 + step)


def write_made(folder: Path) -> Path:
    """The capture as the profiler leaves one, below `folder`."""
    session = folder / "plugins" / "profile" / "2026_01_02_03_04_05"
    session.mkdir(parents=True, exist_ok=True)
    made_space().write(session / "made.xplane.pb")
    return folder


def made_truths(traces: Path, reference: Path) -> Truths:
    """By construction alone."""
    kept = LAST - FIRST  # The first one is warm-up.
    steps, late, rest = kept + 1, 1, DEVICES - 1
    begun = starts()
    window = begun[CUT] - begun[FIRST + 1]
    stops = [window, window - 100]  # Up to the cut step, or to the last op of the last whole one.
    compute = {False: 649, True: 749}
    exposed = {False: 251, True: 151}

    def shares(of: dict[bool, int]) -> list[float]:
        per_step = rest * of[False] + late * of[True]
        return [kept * per_step / DEVICES / stop for stop in stops]

    evaluated = [2 * EVALUATION / stop for stop in stops]
    busy = [a + b for a, b in zip(shares(compute), evaluated, strict=True)]
    comm = shares(exposed)
    reduces = 12 * (3 * 200 + 100)
    flops = kept * 364_485_000_000 + 2 * 275_000_000_000
    means = [window / kept, begun[CUT] / (kept + 1), (begun[LAST] - begun[FIRST + 1]) / (kept - 1)]
    figures = (
        ("fusion.2", 15600.0),
        ("fusion.4", 9552.0),
        ("all-reduce.1", 8400.0),
        ("fusion.1", 5200.0),
        ("fusion.9", 4000.0),
    )
    quiet = tuple(pair for pair in figures if pair[0] != "all-reduce.1")
    return (
        NOT_HELD
        | NO_SUCH
        | NO_MEMORY
        | NO_TRANSFERS
        | {"rs_none": Nothing(), "remat": Nothing()}
        | {
            "step": {"time": us(PERIOD, *means)},
            "step_usual": {"time": us(PERIOD)},
            "step_mean": {"time": us(*means)},
            "step_count": {"count": count(steps, steps + 1)},
            "step_slowest": {"step": name(str(STALLED)), "time": us(2000)},
            "top3": {"names": Ranked(figures, 3)},
            "top_typo": {"names": Ranked(figures, 1)},
            "top_one": {"names": Ranked(figures, 1)},
            "top_not_comm": {"names": Ranked(quiet, 1)},
            "op_total": {"time": us(15600, 14300)},
            "op_step": {"time": us(325, 1300, 300)},
            "op_count": {"count": count(48, 12, 44, 11)},
            "op_mean": {"time": us(325)},
            "op_share": {
                "share": share(
                    14300 / 4 / stops[0], 14300 / 4 / stops[1], 15600 / 56400, 15600 / 47600
                )
            },
            "op_source": {"name": name(SOURCE)},
            "idle": {
                "share": share(*(1 - a - b for a, b in zip(busy, comm, strict=True)), 2200 / 14100)
            },
            "compute": {"share": share(*busy)},
            "not_compute": {"share": share(*(1 - one for one in busy))},
            "exposed": {"share": share(*comm)},
            "largest": {"name": name("compute")},
            "ar_exposed": {"exposed": us(reduces, 7700, 175, 700), "hidden": us(0)},
            "ag_overlap": {"time": us(12 * 4 * 199, 11 * 4 * 199, 199, 796)},
            "by_kind": {"all-reduce": us(175, 700), "all-gather": us(51, 204)},
            "ar_step": {"time": us(175, 700)},
            "ar_total": {"time": us(reduces)},
            "ar_count": {"count": count(1, 4)},
            "ar_bytes": {"bytes": size_of(GRADIENT_BYTES, 4 * GRADIENT_BYTES)},
            "ar_bandwidth": {"rate": Value(GBPS, (GRADIENT_BYTES * 1.5 / 100 / 1e3,))},
            "biggest": {"name": name("all-reduce.1", "all-reduce")},
            "why_idle": {"name": name("load_batch")},
            "longest_gap": {"time": us(1100), "name": name("fusion.1")},
            "between": {"time": us(100)},
            "recompile": Nothing(),
            "kernels": {"count": count(7 * 12 + 2 + 1)},
            "slower": {"name": Name((".*TPU:3",))},
            "waited_for": {"name": Name((".*TPU:3",))},
            "lost": {"time": us(300, 100, 75)},
            "part": {"name": Name((r"(.*\W)?mlp(\W.*)?",))},
            "region": {"time": us(2400, 2200, 50, 200)},
            "backward": {"time": us(325, 1300, 300)},
            "programs": {"jit_train_step": count(13, 52, 12, 48), "jit_eval_step": count(2, 8)},
            "program_call": {"time": us(500)},
            "evaluation": {"time": us(1000, 4000)},
            "bound": {"name": Name(("memory|hbm",))},
            "intensity": {"ratio": Value(RATIO, (0.5,))},
            "mfu": {"share": share(*(flops / (stop * PEAK_TFLOPS * 1e6) for stop in stops))},
            "free_comm": {"time": us(PERIOD - 151, *(one - 151 for one in means))},
            "no_straggler": {"saved": us(100)},
            "try_first": {"name": Name((".*load_batch.*",))},
            "cut": {"whole": name("cut")},
            "hardware": {"name": Name((".*TPU v6.*",)), "count": count(DEVICES)},
        }
    )
