"""XProf's command line as a peer: the verb and the field that its help names for a question.

XProf takes no questions, so the choice is made here, in its favour: a sum over its records counts
as its answer, and so does a filter that its help offers. It reads no JSON, and writes caches beside
a capture: it gets copies.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scoreboard_judge import UNANSWERED, Found, Read, Reply
from scoreboard_questions import NAMES, Question
from scoreboard_truth import BYTES, COUNT, RATIO, SHARE, US, Absent, Nothing, Truth

Data = Any
Names = Mapping[str, str]
Reader = Callable[[Data, Names, Truth], dict[str, Read]]

_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_MIB, _GIB = 2.0**20, 2.0**30
NO_DATA = ("ERROR", "NO_DATA", "INSUFFICIENT_DATA")


class XProf:
    """Runs each verb once per capture."""

    def __init__(self, python: Path, copies: Mapping[str, Path]) -> None:
        self.python = python
        self.copies = copies
        self._kept: dict[tuple[str, ...], str] = {}

    def run(self, capture: str, verb: str, *flags: str) -> str:
        key = (capture, verb, *flags)
        if key not in self._kept:
            command = [str(self.python), "-m", "xprof.cli.xprof_cli", verb]
            done = subprocess.run(
                [*command, str(self.copies[capture]), *flags],
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
            self._kept[key] = done.stdout
        return self._kept[key]

    def ask(self, question: Question, capture: str, truth: Truth) -> tuple[Reply, str]:
        fit = CHOSEN.get(question.key)
        if capture.startswith("gpu") and question.key in ("top3", "top_typo", "top_not_comm"):
            fit = CHOSEN["top_one"]  # There the HLO op is the library call, not the kernel.
        if fit is None or capture not in self.copies:
            # Nobody is told anything: right where there is nothing to be told.
            return Reply(refused=True, fits=isinstance(truth, Absent)), "no tool"
        (verb, *flags), reader = fit
        names = NAMES[capture]
        text = self.run(capture, verb, *(flag.format_map(names) for flag in flags))
        try:
            data = json.loads(text)
        except ValueError:
            return UNANSWERED, f"{verb}: no JSON"
        if isinstance(data, dict) and data.get("status") in NO_DATA:
            fits = isinstance(truth, Absent)
            return Reply(refused=True, fits=fits, chars=len(text)), f"{verb}: {data['status']}"
        parts = reader(data, names, truth)
        empty = not any(read not in (None, []) for read in parts.values())
        zero = all(not one.value for one in parts.values() if isinstance(one, Found))
        none = isinstance(truth, Nothing) and (empty or zero)
        return Reply(none=none, parts=parts, chars=len(text)), verb


# --- readers ------------------------------------------------------------------------------------


def _percent(text: object) -> Read:
    found = re.fullmatch(r"([\d.]+)%?", str(text))
    return Found(float(found[1]) / 100, SHARE) if found else None


def _found(value: float | None, scale: float, unit: str) -> Read:
    return None if value is None or value < 0 else Found(value * scale, unit)


def _steps(part: str, key: str, scale: float, unit: str) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        return {part: _found(data["summary"].get(key), scale, unit)}

    return read


def _slowest(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    rows = data["step_breakdown"]
    row = max(rows, key=lambda row: row["step_time_ms"])
    named = str(row["step_num"]).split()  # "train 3"; a number alone is of XProf's own count.
    return {
        "step": named[-1] if len(named) > 1 else None,
        "time": Found(row["step_time_ms"] * 1e3, US),
    }


def _top(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    return {"names": [row["op_name"] for row in data["records"]] or None}


def _top_kernels(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    rows = data if isinstance(data, list) else data.get("records", [])
    return {"names": [row["short_name"].lstrip("%") for row in rows] or None}


def _top_quiet(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    quiet = [row for row in data["records"] if not _is_collective(row["category"])]
    return {"names": [row["op_name"] for row in quiet]}


def _is_collective(category: str) -> bool:
    return category.startswith(_COLLECTIVES)


def _op(part: str, key: str, scale: float = 1.0, unit: str = US) -> Reader:
    """Summed over the records of this op, of whichever program."""

    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        rows = [row for row in data["records"] if row["op_name"] == names["op"]]
        total = sum(row[key] for row in rows)
        return {part: Found(total * scale, unit) if rows else None}

    return read


def _op_mean(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    rows = [row for row in data["records"] if row["op_name"] == names["op"]]
    runs = sum(row["occurrences"] for row in rows)
    total = sum(row["total_time_us"] for row in rows)
    return {"time": Found(total / runs, US) if runs else None}


def _source(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    for row in data["top_by_time"]:
        if row["name"].endswith(f"/{names['op']}") and row["source_file"]:
            return {"name": f"{row['source_file']}:{row['source_line']}"}
    return {"name": None}


def _absent(op: str) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        return {"names": [row["op_name"] for row in data["records"] if op in row["op_name"]]}

    return read


def _overview(part: str, key: str) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        return {part: _percent(data["performance_summary"].get(key))}

    return read


def _share_of_steps(*keys: str, rest: bool = False) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        share = sum(data["summary"][key] for key in keys) / 100
        return {"share": Found(1 - share if rest else share, SHARE)}

    return read


def _categories(part: str, key: str, scale: float, unit: str, *wanted: str) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        rows = [row for row in data["category_summary"] if row["category"].startswith(wanted)]
        return {part: Found(sum(row[key] for row in rows) * scale, unit) if rows else None}

    return read


def _exposed(kind: str) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        row = data.get("by_op", {}).get(kind)
        if row is None:
            return {"exposed": None, "hidden": None, "time": None}
        hidden = Found((row["span_ps"] - row["exposed_ps"]) / 1e6, US)
        return {"exposed": Found(row["exposed_ps"] / 1e6, US), "hidden": hidden, "time": hidden}

    return read


def _biggest(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    for row in data["records"]:
        if _is_collective(row["category"]):
            return {"name": row["op_name"]}
    return {"name": None}


def _kernels(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    for plane in data["planes"]:
        if re.fullmatch(r"/device:\w+:0", plane["name"]):
            ops = [
                line["event_count"]
                for line in plane["lines"]
                if line["name"] == "XLA Ops" or line["name"].startswith("Stream")
            ]
            return {"count": Found(sum(ops), COUNT)}
    return {"count": None}


def _part(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    return {"name": data["records"][0]["tf_op_name"] if data["records"] else None}


def _region(wanted: str) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        name = wanted.format_map(names)
        rows = [
            row["total_self_time_us"]
            for row in data["records"]
            if name in row["tf_op_name"].rstrip(":").split("/")
        ]
        return {"time": Found(sum(rows), US) if rows else None}

    return read


def _programs(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    counts = {row["event"].split("(")[0]: row["count"] for row in data["aggregates"]}
    wanted = truth if isinstance(truth, dict) else {}
    return {one: _found(counts.get(one), 1, COUNT) for one in wanted}


def _events(part: str, key: str, scale: float, unit: str) -> Reader:
    def read(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
        rows = data["aggregates"]
        return {part: Found(sum(row[key] for row in rows) * scale, unit) if rows else None}

    return read


def _peak(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    return {"bytes": Found(data["modules"][0]["total_hbm_mib"] * _MIB, BYTES)}


def _alive(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    row = data["modules"][0]["top_buffers"][0]
    return {"name": row["instruction"], "bytes": Found(row["size_mib"] * _MIB, BYTES)}


def _headroom(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    return {"bytes": _found(data["peak_usage_details"]["free_memory_gib"], _GIB, BYTES)}


def _bound(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    for row in data["records"]:
        if row["op_name"] == names["bound"]:
            known = row["bound_by"] != "Unknown"
            return {"name": row["bound_by"] if known else None}
    return {"name": None}


def _intensity(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    for row in data["top_operations"]:
        if row["name"] == names["bound"]:
            return {"ratio": Found(row["operational_intensity_flop_per_byte"], RATIO)}
    return {"ratio": None}


def _hardware(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    found = data["run_environment"]
    number = found.get("device_core_count", "")
    return {
        "name": found.get("device_type") or None,
        "count": Found(float(number), COUNT) if number.isdigit() else None,
    }


def _cut(data: Data, names: Names, truth: Truth) -> dict[str, Read]:
    return {"whole": "whole" if data["capture_valid_for_device_analysis"] else None}


_HLO = ("get_hlo_stats", "--limit=10000")
_STEPS = ("get_step_trace", "--limit=10000")
_CATEGORY = ("get_hlo_op_profile", "--view=category", "--top_n=1000")
_OVERLAP = ("analyze_async_overlap",)
_PEAK = ("get_peak_allocations",)
_MODULE = "aggregate_xplane_events"

CHOSEN: dict[str, tuple[tuple[str, ...], Reader]] = {
    "step": (_STEPS, _steps("time", "step_time_ms_average", 1e3, US)),
    "step_usual": (_STEPS, _steps("time", "step_time_ms_average", 1e3, US)),
    "step_mean": (_STEPS, _steps("time", "step_time_ms_average", 1e3, US)),
    "step_count": (_STEPS, _steps("count", "total_steps", 1, COUNT)),
    "step_slowest": (_STEPS, _slowest),
    "top3": (_HLO, _top),
    "top_typo": (_HLO, _top),
    "top_one": (("get_kernel_stats",), _top_kernels),
    "top_not_comm": (_HLO, _top_quiet),
    "op_total": (_HLO, _op("time", "total_self_time_us")),
    "op_count": (_HLO, _op("count", "occurrences", unit=COUNT)),
    "op_mean": (_HLO, _op_mean),
    "op_share": (_HLO, _op("share", "self_time_percent", 0.01, SHARE)),
    "op_source": (("get_top_hlo_ops", "--limit=1000"), _source),
    "op_none": (_HLO, _absent("flash_attention_kernel")),
    "op_none_typo": (_HLO, _absent("ragged_conv_fusion.77")),
    "idle": (("get_overview",), _overview("share", "device_idle_time_percent")),
    "compute": (_STEPS, _share_of_steps("compute_percent")),
    "not_compute": (_STEPS, _share_of_steps("compute_percent", rest=True)),
    "exposed": (_STEPS, _share_of_steps("communication_percent")),
    "largest": (
        _STEPS,
        lambda data, names, truth: {"name": data["summary"]["primary_bottleneck"]},
    ),
    "host_transfer": (
        _CATEGORY,
        _categories("share", "fraction_of_total_time", 1, SHARE, "copy-done", "copy-start"),
    ),
    "ar_exposed": (_OVERLAP, _exposed("all-reduce")),
    "ag_overlap": (_OVERLAP, _exposed("all-gather")),
    "ar_total": (_CATEGORY, _categories("time", "total_self_time_ms", 1e3, US, "all-reduce")),
    "biggest": (_HLO, _biggest),
    "rs_none": (_CATEGORY, _categories("time", "total_self_time_ms", 1e3, US, "reduce-scatter")),
    "memcpy": (_CATEGORY, _categories("time", "total_self_time_ms", 1e3, US, "copy")),
    "why_idle": (("check_host_boundness",), lambda data, names, truth: {"name": None}),
    "between": (_STEPS, _steps("time", "idle_time_ms_average", 1e3, US)),
    "recompile": (
        (_MODULE, "--event_regex=backend_compile"),
        _events("count", "count", 1, COUNT),
    ),
    "kernels": (("inspect_capture",), _kernels),
    "part": (_HLO, _part),
    "region": (_HLO, _region("{region}")),
    "region_none": (_HLO, _region("layer_99")),
    "programs": ((_MODULE, "--event_regex=^jit_|^reactant"), _programs),
    "program_call": (
        (_MODULE, "--plane_regex=device", "--event_regex=^{program}\\("),
        _events("time", "p50_duration_ps", 1e-6, US),
    ),
    "evaluation": (
        (_MODULE, "--plane_regex=device", "--event_regex=eval"),
        _events("time", "total_duration_ps", 1e-6, US),
    ),
    "peak": (_PEAK, _peak),
    "lives": (_PEAK, _alive),
    "free": (_PEAK, _alive),
    "oom": (("get_memory_profile",), _headroom),
    "bound": (_HLO, _bound),
    "intensity": (("get_roofline_model", "--top_n=1000"), _intensity),
    "mfu": (("get_overview",), _overview("share", "compute_efficiency_percent")),
    "cut": (("inspect_capture",), _cut),
    "hardware": (("get_overview",), _hardware),
}
