"""What is true of each capture, from anything but this package's own analysis.

The sources: XProf's tables (hlo_stats, overview, memory viewer), the construction of the made
capture, and plain sums over the raw events (`scoreboard_raw`). A question has a truth only for the
captures where it has one clear answer; more than one value is given where a question leaves it open
(whole capture or steady window, of one device or summed over all), and each counts as right.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from scoreboard_made import made_truths
from scoreboard_questions import CPU, GTX, MADE, MI300X, NAMES, SERVING, TPU
from scoreboard_raw import Ops, allocator_says, compiles, peak_in_use, read_events
from scoreboard_truth import (
    GBPS,
    NO_COLLECTIVES,
    NO_COSTS,
    NO_MEMORY,
    NO_SUCH,
    NO_TRAINING,
    NO_TRANSFERS,
    NOT_HELD,
    RATIO,
    Absent,
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


def op_truths(
    ops: Ops,
    wanted: str,
    steps: int | None,
    ledgers: Iterable[float],
    begun: Sequence[float] = (),
) -> Truths:
    """Of one op by name; the times of a window's devices together are in `ledgers`. Where it is
    known when the steps begin, the first may be left out, and the last, which has no period."""
    lengths, devices = ops.lengths(wanted), len(ops.devices)
    total, op_time = sum(lengths), sum(op.length for op in ops.all)
    found: Truths = {
        "op_total": {"time": us(total)},
        "op_count": {"count": count(len(lengths), len(lengths) / devices)},
        "op_mean": {"time": us(fmean(lengths))},
        "op_share": {"share": share(*(total / one for one in (op_time, *ledgers)), within=1e-4)},
    }
    if steps:
        sums = [total / steps]
        for end, kept in ((float("inf"), steps - 1), (begun[-1], steps - 2)) if begun else ():
            mine = (op for op in ops.all if op.name == wanted and begun[1] <= op.start < end)
            sums.append(sum(op.length for op in mine) / kept)
        found["op_step"] = {"time": us(*sums, *(one / devices for one in sums))}
    return found


def top_truths(ops: Ops) -> Truths:
    every, compute = ops.totals(), ops.totals(collectives=False)
    return {
        "top3": {"names": Ranked(every, 3)},
        "top_typo": {"names": Ranked(every, 1)},
        "top_one": {"names": Ranked(every, 1)},
        "top_not_comm": {"names": Ranked(compute, 1)},
    }


def ledger_truths(*ledgers: dict[str, float], largest: str) -> Truths:
    """Shares of any of these windows; none of communication is a truth of its own."""
    found: Truths = {
        "idle": {"share": share(*(one["idle"] for one in ledgers))},
        "compute": {"share": share(*(one["compute"] for one in ledgers))},
        "not_compute": {"share": share(*(1 - one["compute"] for one in ledgers))},
        "largest": {"name": name(largest)},
    }
    if any(one["communication"] for one in ledgers):
        found["exposed"] = {"share": share(*(one["communication"] for one in ledgers))}
    return found


# --- captures -----------------------------------------------------------------------------------


def cpu_truths(traces: Path, reference: Path) -> Truths:
    ops = Ops(read_events(_file(traces, CPU, ".xplane.pb")))
    begun = [one.start for one in ops.events if "step_num" in one.stats]
    whole, steady = ops.windows(), {}
    for device in ops.devices:
        steady[device] = (begun[1], max(op.end for op in ops.of(device)))
    periods = [after - before for before, after in pairwise(begun)][1:]
    reduces = {device: [op for op in ops.of(device) if op.kind == "all-reduce"] for device in whole}
    meetings = list(zip(*reduces.values(), strict=True))
    wire = [min(op.length for op in members) for members in meetings]
    waited = sum(
        op.length - least for members, least in zip(meetings, wire, strict=True) for op in members
    )
    both = (ops.ledger(whole), ops.ledger(steady))
    total = sum(op.length for members in meetings for op in members)
    tensor = 512 * 512 * 4
    slowest = max(range(len(periods)), key=periods.__getitem__)
    gap, after = max(found for device in ops.devices for found in ops.gaps(device))
    up = sum(sum(ops.lengths(one)) for one in ("ynn_fusion.2", "wrapped_tanh"))
    exposed = [one["communication"] * one["us"] for one in both]
    hidden = [one["hidden"] * one["us"] for one in both]
    memory = _memory(reference, CPU)[0]
    n = len(begun)
    return (
        NOT_HELD
        | NO_SUCH
        | NO_TRAINING
        | NO_TRANSFERS
        | NO_COSTS
        | {"ag_overlap": Nothing(), "recompile": Nothing(), "cut": {"whole": name("whole")}}
        | top_truths(ops)
        | op_truths(ops, NAMES[CPU]["op"], n, [one["us"] for one in both], begun)
        | ledger_truths(*both, largest="communication")
        | {
            "step": {"time": us(median(periods), fmean(periods))},
            "step_usual": {"time": us(median(periods))},
            "step_mean": {"time": us(fmean(periods))},
            "step_count": {"count": count(n)},
            "step_slowest": {"step": name(str(slowest + 1)), "time": us(periods[slowest])},
            "ar_exposed": {
                "exposed": us(*exposed, *(one / n / 8 for one in exposed)),
                "hidden": us(*hidden, *(one / n / 8 for one in hidden), within=100),
            },
            "by_kind": {"all-reduce": us(exposed[0] / n, exposed[0] / n / 8, *_steady(exposed[1]))},
            "ar_step": {"time": us(total / n, total / n / 8)},
            "ar_total": {"time": us(total)},
            "ar_count": {"count": count(1, 8)},
            "ar_bytes": {"bytes": size_of(tensor, 8 * tensor)},
            "ar_bandwidth": {"rate": Value(GBPS, (tensor * 1.75 * n / sum(wire) / 1e3,))},
            "biggest": {"name": name("psum_invariant.7", "all-reduce")},
            "longest_gap": {"time": us(gap), "name": name(after)},
            "kernels": {"count": count(len(ops.of("/device:CPU:0")))},
            "lost": {"time": us(waited / n / 8, waited / n)},
            "part": {"name": Name((r"(.*\W)?mlp_down(\W.*)?",))},
            "region": {"time": us(up, up / n / 8)},
            "programs": {"jit_f": count(n, 8 * n)},
            "peak": {"bytes": size_of(memory["peakHeapMib"] * 2**20)},
            "lives": {"name": _alive(memory)},
            "parameters": {"bytes": size_of(memory["entryComputationParametersMib"] * 2**20)},
            "free": {"bytes": size_of(2**20)},
            "oom": Absent(),
            "hardware": {"name": Name((".*cpu.*",)), "count": count(8)},
        }
    )


def _steady(total: float) -> tuple[float, ...]:
    """Of eleven kept steps, summed over eight devices or of one."""
    return total / 11, total / 11 / 8


def tpu_truths(traces: Path, reference: Path) -> Truths:
    ops = Ops(read_events(_file(traces, TPU, ".xplane.pb")))
    tables = reference / "tpu_v6e_4dev_xprof_2.24.2"
    hlo = _rows(tables / "hlo_stats.json")
    begun: dict[str, list[float]] = {}
    ended: dict[str, list[float]] = {}
    for device in ops.devices:
        mine = [op for op in ops.of(device) if op.stats.get("program_id") == _JIT_F]
        begun[device] = [op.start for op in mine if op.name == "copy-start"]
        ended[device] = [op.end for op in mine if op.name == "copy-done.5"]
    periods = [median(b - a for a, b in pairwise(starts[1:])) for starts in begun.values()]
    means = [(starts[-1] - starts[1]) / 98 for starts in begun.values()]
    steady = {device: (begun[device][1], ended[device][-1]) for device in ops.devices}
    both = (ops.ledger(ops.windows()), ops.ledger(steady))
    xprof_idle = (
        float(
            json.loads((tables / "overview_page.json").read_text())[0]["p"][
                "device_idle_time_percent"
            ].rstrip("%")
        )
        / 100
    )
    calls = [
        b - a for device in ops.devices for a, b in zip(begun[device], ended[device], strict=True)
    ]
    op, total = NAMES[TPU]["op"], sum(row["total_self_time"] for row in hlo)
    figures = tuple((row["hlo_op_name"], row["total_self_time"]) for row in hlo)
    quiet = tuple(pair for pair in figures if pair[0] != "all-reduce")
    mine = next(row for row in hlo if row["hlo_op_name"] == op)
    reduce = next(row for row in hlo if row["hlo_op_name"] == "all-reduce")
    waits = sum(
        row["total_self_time"] for row in hlo if row["category"] in ("copy-start", "copy-done")
    )
    adds = sum(
        row["total_self_time"] for row in hlo if row["hlo_op_name"].startswith("broadcast_add")
    )
    bound = next(row for row in hlo if row["hlo_op_name"] == NAMES[TPU]["bound"])
    memory = {
        (one["module"].split("(")[0], one["memory_space"]): one for one in _memory(reference, TPU)
    }
    peak = memory["jit_f", 0]
    allocated = allocator_says(ops.events)
    gap, after = max(found for device in ops.devices for found in ops.gaps(device))
    tensor = 5 * 1024 * 1024 * 256 * 4
    return (
        NOT_HELD
        | NO_SUCH
        | NO_TRAINING
        | {"ag_overlap": Nothing(), "op_source": Absent()}
        | {
            "step": {"time": us(*periods, *means)},
            "step_usual": {"time": us(*periods)},
            "step_mean": {"time": us(*means)},
            "step_count": {"count": count(100)},
            "top3": {"names": Ranked(figures, 3)},
            "top_typo": {"names": Ranked(figures, 1)},
            "top_one": {"names": Ranked(figures, 1)},
            "top_not_comm": {"names": Ranked(quiet, 1)},
            "op_total": {"time": us(mine["total_self_time"])},
            "op_step": {"time": us(mine["total_self_time"] / 100, mine["total_self_time"] / 400)},
            "op_count": {"count": count(mine["occurrences"], 100)},
            "op_mean": {"time": us(mine["avg_self_time"])},
            "op_share": {
                "share": share(
                    mine["total_self_time"] / total,
                    *(mine["total_self_time"] / one["us"] for one in both),
                )
            },
            "idle": {"share": share(xprof_idle, both[1]["idle"], within=0.006)},
            "compute": {"share": share(*(one["compute"] for one in both))},
            "not_compute": {"share": share(*(1 - one["compute"] for one in both))},
            "exposed": {"share": share(reduce["total_self_time"] / both[0]["us"], 0.0)},
            "largest": {"name": Name((".*transfer.*",))},
            "host_transfer": {"share": share(*(one["transfer"] for one in both))},
            "ar_exposed": {"exposed": us(reduce["total_self_time"]), "hidden": us(0)},
            "ar_total": {"time": us(reduce["total_self_time"])},
            "biggest": {"name": name("all-reduce")},
            "d2h_bytes": {"bytes": size_of(3 * tensor, 12 * tensor)},
            "memcpy": {"time": us(waits)},
            "longest_gap": {"time": us(gap), "name": name(after)},
            "recompile": {"count": count(compiles(ops.events))},
            "kernels": {"count": count(len(ops.of("/device:TPU:0")))},
            "region": {"time": us(adds, adds / 100, adds / 400)},
            "programs": {"jit_f": count(100, 400), "jit__psum": count(3, 12)},
            "program_call": {"time": us(median(calls), fmean(calls))},
            "peak": {"bytes": size_of(peak["peakHeapMib"] * 2**20)},
            "lives": {"name": _alive(peak)},
            "parameters": {
                "bytes": size_of(0, memory["jit_f", 5]["entryComputationParametersMib"] * 2**20)
            },
            "free": {"bytes": size_of(tensor)},
            "oom": {"bytes": size_of(*allocated)},
            "bound": {"name": Name(("memory|hbm",))},
            "intensity": {"ratio": Value(RATIO, (bound["operational_intensity"],))},
            "mfu": {
                "share": share(*(1610612736000 / 400 / one / 918e6 for one in means), within=5e-5)
            },
            "try_first": {"name": Name((".*(host|transfer|copy|copies|offload).*",))},
            "cut": {"whole": name("whole")},
            "hardware": {"name": Name((".*TPU v6.*",)), "count": count(4)},
        }
    )


_JIT_F = 12190760917235803885


def serving_truths(traces: Path, reference: Path) -> Truths:
    ops = Ops(read_events(_file(traces, SERVING, ".gz")))
    modules: dict[str, list[float]] = defaultdict(list)
    for event in ops.events:
        if event.line == "XLA Modules":
            modules[event.name.split("(")[0]].append(event.length)
    ledger = ops.ledger(ops.windows())
    reduces = [op for op in ops.all if op.kind == "all-reduce"]
    total = sum(op.length for op in reduces)
    gap, after = max(found for device in ops.devices for found in ops.gaps(device))
    call = modules["jit_step_fun"]
    per_device = sum(_bytes(op.stats["long_name"]) for op in reduces) / 2
    return (
        NOT_HELD
        | NO_SUCH
        | NO_TRAINING
        | NO_MEMORY
        | NO_COSTS
        | op_truths(ops, NAMES[SERVING]["op"], 1, [ledger["us"]])
        | {
            "op_source": {"name": Name((r".*module\.py:1775",))},
            "step": {"time": us(median(call))},
            "step_usual": {"time": us(median(call))},
            "step_mean": {"time": us(median(call))},
            "step_count": {"count": count(1)},
            "idle": {"share": share(ledger["idle"])},
            "largest": {"name": name("compute")},
            "ar_exposed": {"exposed": us(total, total / 2), "hidden": us(0)},
            "ar_step": {"time": us(total, total / 2)},
            "ar_total": {"time": us(total)},
            "ar_count": {"count": count(len(reduces), len(reduces) / 2)},
            "ar_bytes": {"bytes": size_of(per_device, 2 * per_device)},
            "biggest": {"name": Name(("all-reduce.*|psum.*",))},
            "longest_gap": {"time": us(gap), "name": name(after)},
            "recompile": Nothing(),
            "kernels": {"count": count(len(ops.of("/device:TPU:0")))},
            "programs": {key: count(len(modules[key]), 1) for key in modules},
            "program_call": {"time": us(*call)},
            "try_first": {"name": Name((".*(RPA|attn|attention|all-reduce).*",))},
            "hardware": {"name": Name((".*TPU.*",)), "count": count(2)},
        }
    )


def mi300x_truths(traces: Path, reference: Path) -> Truths:
    ops = Ops(read_events(_file(traces, MI300X, ".xplane.pb")))
    ledger = ops.ledger(ops.windows())
    gap, after = max(found for device in ops.devices for found in ops.gaps(device))
    plans = _memory(reference, MI300X)
    largest = max(plans, key=lambda one: one["peakHeapMib"])
    converts = [
        op.length for op in ops.all if op.stats.get("hlo_module") == "jit_convert_element_type"
    ]
    copies = [op.length for op in ops.all if "copyBuffer" in op.name]
    dots = [op.length for op in ops.all if op.stats.get("hlo_module") == "jit_dot"]
    return (
        NOT_HELD
        | NO_SUCH
        | NO_TRAINING
        | NO_COLLECTIVES
        | top_truths(ops)
        | op_truths(ops, NAMES[MI300X]["op"], None, [ledger["us"]])
        | {
            "idle": {"share": share(ledger["idle"])},
            "largest": {"name": name("idle")},
            "memcpy": {"time": us(sum(copies))},
            "longest_gap": {"time": us(gap), "name": name(after)},
            "kernels": {"count": count(len(ops.all), len(ops.all) - len(copies))},
            "region": {"time": us(sum(dots))},
            "programs": {
                "jit_convert_element_type": count(len(converts)),
                "jit_dot": count(3, len(dots)),
            },
            "program_call": {"time": us(median(converts), fmean(converts))},
            "peak": {"bytes": size_of(largest["peakHeapMib"] * 2**20, peak_in_use(ops.events))},
            "lives": {"name": _alive(largest)},
            "parameters": {"bytes": size_of(largest["entryComputationParametersMib"] * 2**20)},
            "free": {"bytes": size_of(128 * 2**20)},
            "oom": {"bytes": size_of(*allocator_says(ops.events))},
            "bound": {"name": Name(("memory|hbm",))},
            "hardware": {"name": Name((".*(MI300|AMD).*",)), "count": count(1, 8)},
        }
    )


def gtx_truths(traces: Path, reference: Path) -> Truths:
    ops = Ops(read_events(_file(traces, GTX, ".xplane.pb")))
    plan = _memory(reference, GTX)[0]
    lengths = [op.length for op in ops.all]
    return (
        NOT_HELD
        | NO_SUCH
        | NO_TRAINING
        | NO_COLLECTIVES
        | NO_TRANSFERS
        | top_truths(ops)
        | op_truths(ops, NAMES[GTX]["op"], None, [])
        | {
            "idle": {"share": share(0.0)},
            "compute": {"share": share(1.0)},
            "not_compute": {"share": share(0.0)},
            "largest": {"name": name("compute")},
            "recompile": Nothing(),
            "kernels": {"count": count(1)},
            "programs": {"reactant_fn": count(1, 2)},
            "program_call": {"time": us(*lengths)},
            "peak": {"bytes": size_of(plan["peakHeapMib"] * 2**20)},
            "parameters": {"bytes": size_of(plan["entryComputationParametersMib"] * 2**20)},
            "oom": {"bytes": size_of(*allocator_says(ops.events))},
            "hardware": {"name": Name((".*(1080|Nvidia).*",)), "count": count(2)},
        }
    )


TRUTHS = {
    CPU: cpu_truths,
    TPU: tpu_truths,
    SERVING: serving_truths,
    MI300X: mi300x_truths,
    GTX: gtx_truths,
    MADE: made_truths,
}


# --- small readers ------------------------------------------------------------------------------

_FOLDERS = {SERVING: "tpu_vllm_serving/plugins/profile/2026_01_12_00_26_20"}
_WIDTHS = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4}


def folder_of(traces: Path, capture: str) -> Path:
    return traces / _FOLDERS.get(capture, capture)


def _file(traces: Path, capture: str, suffix: str) -> Path:
    found = sorted(folder_of(traces, capture).rglob(f"*{suffix}"))
    return next(one for one in found if not one.name.startswith("perfetto"))


def _rows(path: Path) -> list[dict[str, float]]:
    table = json.loads(path.read_text())
    keys = [column["id"] for column in table["cols"]]
    return [
        dict(zip(keys, (cell.get("v") for cell in row["c"]), strict=True)) for row in table["rows"]
    ]


def _memory(reference: Path, capture: str) -> list[dict[str, Any]]:
    table = json.loads((reference / "memory_viewer_xprof_2.24.2.json").read_text())
    return [one for one in table if one["capture"] == capture]


def _alive(plan: dict[str, Any]) -> Name:
    """The largest buffers at the peak; where some are equal, any of them."""
    named = [row for row in plan["at_peak"] if row[0]]
    most = max(row[4] for row in named)
    words = [row[0].split("{")[0] for row in named if row[4] == most]
    return Name(tuple(f"{re.escape(word)}(\\W.*)?" for word in words))


def _bytes(text: str) -> float:
    """Of the arrays that an HLO instruction gives, by their shapes."""
    shapes = re.findall(r"(\w+)\[([\d,]*)\]", text.split(" = ", 1)[1].split("(", 1)[0])
    if text.split(" = ", 1)[1].startswith("("):
        shapes = re.findall(r"(\w+)\[([\d,]*)\]", text.split(" = ", 1)[1].split(" all-", 1)[0])
    total = 0
    for kind, dims in shapes:
        elements = 1
        for one in filter(None, dims.split(",")):
            elements *= int(one)
        total += elements * _WIDTHS[kind]
    return total
