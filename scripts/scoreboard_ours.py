"""How an answer of `marin-profile query` is read: which queries answer a question, and where.

Every place is a field of the query's rows, by name; its unit is what the answer's `units` say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scoreboard_judge import Found, Read, Reply
from scoreboard_truth import BYTES, COUNT, GBPS, RATIO, SHARE, US, Nothing, Truth

Answer = Mapping[str, Any]
Row = Mapping[str, Any]
Reader = Callable[[Answer, Mapping[str, str]], Read]

_UNITS = {
    "us": US,
    "share of 1": SHARE,
    "share of device op time": SHARE,
    "byte": BYTES,
    "byte/step": BYTES,
    "count": COUNT,
    "device": COUNT,
    "step": COUNT,
    "GB/s": GBPS,
    "ratio": RATIO,
}


def _rows(answer: Answer, names: Mapping[str, str], where: Mapping[str, str]) -> list[Row]:
    wanted = {key: value.format_map(names) for key, value in where.items()}
    return [
        row
        for row in answer["results"]
        if all(_is(key, row.get(key), value) for key, value in wanted.items())
    ]


def _is(key: str, found: object, wanted: str) -> bool:
    if key == "path":
        return wanted in str(found).split("=>")
    if key == "name" and wanted != "None":
        return found in (wanted, f"{wanted}.kd")
    return str(found) == wanted


def _unit(answer: Answer, key: str) -> str:
    stated = answer.get("units", {}).get(key, "none stated")
    return _UNITS.get(stated, stated)


def figure(key: str, how: str = "first", *, unit: str = "", **where: str) -> Reader:
    """The field `key` (dots lead into a record) of the first row like `where`, or of all. `unit`:
    where the answer's own is wider (a count per step is a ratio)."""

    def read(answer: Answer, names: Mapping[str, str]) -> Read:
        rows = _rows(answer, names, where)
        values = [_deep(row, key) for row in rows if key.split(".")[0] in row]
        if not values or None in values:
            return None
        value = {"first": values[0], "sum": sum(values), "max": max(values)}[how]
        return Found(value, unit or _unit(answer, key.split(".")[-1]))

    return read


def words(key: str, **where: str) -> Reader:
    """The words in field `key` of the first row like `where`; of a list, its first ones."""

    def read(answer: Answer, names: Mapping[str, str]) -> Read:
        for row in _rows(answer, names, where):
            found = _deep(row, key)
            if isinstance(found, list):
                return str(found[0]) if found else None
            return None if found is None else str(found)
        return None

    return read


def listed(key: str) -> Reader:
    return lambda answer, names: [str(row.get(key)) for row in answer["results"] if key in row]


def ratio(over: str, under: str, unit: str | None = None, **where: str) -> Reader:
    """Of two fields summed over the rows like `where`, in the unit of the upper one or `unit`."""

    def read(answer: Answer, names: Mapping[str, str]) -> Read:
        upper, lower = (figure(key, "sum", **where)(answer, names) for key in (over, under))
        if not isinstance(upper, Found) or not isinstance(lower, Found) or not lower.value:
            return None
        return Found(upper.value / lower.value, unit or upper.unit)

    return read


def total(*keys: str, **where: str) -> Reader:
    """The sum of several fields of one row."""

    def read(answer: Answer, names: Mapping[str, str]) -> Read:
        found = [figure(key, **where)(answer, names) for key in keys]
        known = [one for one in found if isinstance(one, Found)]
        if len(known) != len(keys):
            return None
        return Found(sum(one.value for one in known), known[0].unit)

    return read


def largest(by: str, key: str) -> Reader:
    """Field `key` of the row with the most of `by`."""

    def read(answer: Answer, names: Mapping[str, str]) -> Read:
        rows = [row for row in answer["results"] if row.get(by) is not None]
        row = max(rows, key=lambda row: row[by], default=None)
        if row is None or row.get(key) is None:
            return None
        return Found(row[key], _unit(answer, key)) if by == key else str(row[key])

    return read


def only(kind: str, reader: Reader) -> Reader:
    """Nothing unless all rows are of this kind."""

    def read(answer: Answer, names: Mapping[str, str]) -> Read:
        alike = all(row.get("category", kind) == kind for row in answer["results"])
        return reader(answer, names) if alike else "rows of other kinds"

    return read


def whole(answer: Answer, names: Mapping[str, str]) -> Read:
    """The row says whether events were lost; a cut step is a warning."""
    warned = any("cut" in str(row.get("warning", "")) for row in answer["results"])
    return "whole" if answer["results"][0]["whole"] and not warned else "cut"


def _deep(row: Row, key: str) -> Any:
    value: Any = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


Reading = tuple[str, dict[str, Reader]]
_OP = ("gap_region_context", "top_ops", "bound_by")


def _of_op(part: str, reader: Reader) -> list[Reading]:
    return [(query, {part: reader}) for query in _OP]


_SHARES = ("device_ledger", {"record": "total"}), ("compute_vs_communication", {})
_AR = {"collective": "all-reduce"}
_PROGRAM = {"name": "{program}"}

OURS: dict[str, list[Reading]] = {
    "step": [
        ("step_time", {"time": figure("length.typical", record="steps")}),
        ("overview", {"time": figure("step_median")}),
    ],
    "step_usual": [("step_time", {"time": figure("length.typical", record="steps")})],
    "step_mean": [
        ("step_time", {"time": figure("length.mean", record="steps")}),
        ("overview", {"time": figure("step_mean")}),
    ],
    "step_count": [
        ("step_time", {"count": figure("steps", record="steps")}),
        ("capture", {"count": figure("steps")}),
    ],
    "step_slowest": [
        (
            "step_time",
            {
                "step": words("step_num", record="step"),
                "time": figure("period_of_step", record="step"),
            },
        ),
    ],
    "top3": [("top_ops", {"names": listed("name")})],
    "top_typo": [("top_ops", {"names": listed("name")})],
    "top_one": [("top_ops", {"names": listed("name")})],
    "top_not_comm": [("top_ops", {"names": listed("name")})],
    "op_total": _of_op("time", figure("total_duration", "sum", name="{op}")),
    "op_step": _of_op("time", figure("per_step_duration", "sum", name="{op}")),
    "op_count": _of_op("count", figure("count", "sum", name="{op}", record="op")),
    "op_mean": _of_op("time", ratio("total_duration", "count", name="{op}", record="op")),
    "op_share": _of_op("share", figure("share_of_op_time", "sum", name="{op}")),
    "op_source": _of_op("name", words("source_file", name="{op}")),
    "op_none": [(query, {}) for query in (*_OP, "hierarchical_regions")],
    "op_none_typo": [(query, {}) for query in _OP],
    "idle": [(query, {"share": figure("idle_share", **where)}) for query, where in _SHARES]
    + [("overview", {"share": figure("device_time.idle_share")})],
    "compute": [("time_of", {"share": figure("share_of_device_time", what="compute")})]
    + [(query, {"share": figure("compute_share", **where)}) for query, where in _SHARES]
    + [("overview", {"share": figure("device_time.compute_share")})],
    "not_compute": [
        ("time_of", {"share": figure("share_of_device_time", what="all but compute")}),
        (
            "device_ledger",
            {
                "share": total(
                    "exposed_communication_share",
                    "exposed_transfer_share",
                    "unattributed_share",
                    "idle_share",
                    record="total",
                )
            },
        ),
    ],
    "exposed": [
        ("device_ledger", {"share": figure("exposed_communication_share", record="total")}),
        ("compute_vs_communication", {"share": figure("communication_share")}),
        ("overview", {"share": figure("device_time.exposed_communication_share")}),
    ],
    "largest": [("compute_vs_communication", {"name": words("largest")})],
    "host_transfer": [
        ("device_ledger", {"share": figure("exposed_transfer_share", record="total")}),
        ("transfers", {"share": figure("waited_share", "sum")}),
    ],
    "ar_exposed": [
        (
            "collective_breakdown",
            {
                "exposed": figure("exposed_duration", "sum", **_AR),
                "hidden": figure("overlapped_duration", "sum", **_AR),
            },
        ),
    ],
    "ag_overlap": [
        (
            "collective_breakdown",
            {"time": figure("overlapped_duration", "sum", collective="all-gather")},
        )
    ],
    "by_kind": [
        ("compute_vs_communication", {"none": figure("communication_duration")}),
        ("collective_breakdown", {"none": figure("exposed_duration", "sum")}),
    ],
    "ar_step": [
        ("time_of", {"time": figure("per_step_duration", what="all-reduce")}),
        ("collective_breakdown", {"time": figure("per_step_duration", "sum", **_AR)}),
        ("top_ops", {"time": only("all-reduce", figure("per_step_duration", "sum"))}),
    ],
    "ar_total": [
        ("time_of", {"time": figure("exclusive_duration", what="all-reduce")}),
        ("collective_breakdown", {"time": figure("total_duration", "sum", **_AR)}),
        ("top_ops", {"time": only("all-reduce", figure("total_duration", "sum"))}),
    ],
    "ar_count": [
        ("collective_breakdown", {"count": figure("count_per_step", "sum", unit=COUNT, **_AR)})
    ],
    "ar_bytes": [("collective_breakdown", {"bytes": figure("bytes_per_step", "sum", **_AR)})],
    "ar_bandwidth": [("collective_breakdown", {"rate": figure("bus_gbps", **_AR)})],
    "biggest": [("collective_breakdown", {"name": words("collective")})],
    "rs_none": [("collective_breakdown", {}), ("top_ops", {})],
    "d2h_bytes": [("transfers", {"bytes": figure("bytes_per_step", "sum", kind="device_to_host")})],
    "memcpy": [("transfers", {"time": figure("waited_duration", "sum")})],
    "why_idle": [("host_activity", {"name": words("name", record="cause")})],
    "longest_gap": [
        (
            "pre_op_gap",
            {
                "time": largest("max_gap_duration", "max_gap_duration"),
                "name": largest("max_gap_duration", "marker_op"),
            },
        )
    ],
    "between": [
        ("step_time", {"time": figure("gap_median", record="steps")}),
        (
            "host_activity",
            {"time": figure("idle_per_step", "sum", record="cause", place="between")},
        ),
    ],
    "recompile": [
        ("compilations", {"count": figure("compilations", "sum", unit=COUNT, record="host")}),
        ("host_activity", {"count": figure("count", "sum", record="compile")}),
    ],
    "kernels": [],
    "slower": [("stragglers", {"name": words("stragglers", record="whole")})],
    "waited_for": [("stragglers", {"name": words("stragglers", record="whole")})],
    "lost": [
        (
            "stragglers",
            {"time": figure("wait_per_step_duration", "sum", record="collective")},
        )
    ],
    "part": [("hierarchical_regions", {"name": largest("exclusive_duration", "path")})],
    "region": [
        ("hierarchical_regions", {"time": figure("inclusive_duration", path="{region}")}),
        ("gap_region_context", {"time": figure("inclusive_duration", path="{region}")}),
        ("passes", {"time": figure("exclusive_duration", **{"pass": "{region}"})}),
    ],
    "backward": [("passes", {"time": figure("per_step_duration", **{"pass": "backward"})})],
    "remat": [("passes", {})],
    "region_none": [("hierarchical_regions", {}), ("gap_region_context", {})],
    "program_call": [("programs", {"time": figure("call_median", **_PROGRAM)})],
    "evaluation": [("programs", {"time": figure("exposed_duration", name="jit_eval_step")})],
    "peak": [("memory", {"bytes": figure("peak_size", "max", record="program")})],
    "lives": [("memory", {"name": words("instruction", record="buffer")})],
    "parameters": [("memory", {"bytes": figure("parameter_size", record="program")})],
    "free": [("memory", {"bytes": figure("size", "max", record="buffer")})],
    "oom": [("memory", {"bytes": figure("headroom_size", record="in_use")})],
    "bound": _of_op("name", words("bound_by", name="{bound}")),
    "intensity": _of_op("ratio", ratio("flops", "bytes_accessed", RATIO, name="{bound}")),
    "mfu": [("bound_by", {"share": figure("mfu", record="program")})],
    "free_comm": [
        ("what_if", {"time": figure("step_then", change="communication", name="None")}),
    ],
    "no_straggler": [("what_if", {"saved": figure("saving", change="device")})],
    "try_first": [("optimization_candidates", {"name": words("title")})],
    "cut": [("capture", {"whole": whole})],
    "hardware": [
        ("capture", {"name": words("hardware_type"), "count": figure("num_devices")}),
    ],
}


def read(key: str, truth: Truth, answer: Answer, names: Mapping[str, str], chars: int) -> Reply:
    """The reply to question `key`. Only the queries in OURS can answer it."""
    query = answer["query_type"]
    if key == "programs" and isinstance(truth, dict):
        readings: list[Reading] = [
            ("programs", {name: figure("executions", "sum", name=name) for name in truth})
        ]
    elif key == "by_kind" and isinstance(truth, dict):
        readings = [
            (
                "collective_breakdown",
                {
                    name: figure("exposed_per_step_duration", "sum", collective=name)
                    for name in truth
                },
            )
        ]
    else:
        readings = OURS.get(key, [])
    parts = next((parts for fitting, parts in readings if fitting == query), None)
    if parts and isinstance(truth, dict) and "none" in parts:
        parts = None  # The place can only say that there is none.
    if "cannot_answer" in answer:
        # No query at all, or one of this question, says why; that of another question does not.
        # That there is none of a thing only a query of this question can say.
        unknown = query is None and not isinstance(truth, Nothing)
        own = parts is not None or (query in _ABSENCE.get(key, ()))
        return Reply(refused=True, fits=own or unknown, chars=chars)
    if parts is None:
        return Reply(fits=False, chars=chars)
    found = {part: reader(answer, names) for part, reader in parts.items()}
    none = not answer["results"] or (isinstance(truth, Nothing) and _is_none(answer, found))
    return Reply(none=none, parts=found, chars=chars)


def _is_none(answer: Answer, found: Mapping[str, Read]) -> bool:
    """Zero; or a whole list in which it does not stand."""
    values = [one.value for one in found.values() if isinstance(one, Found)]
    unlisted = bool(found) and not answer["truncated"] and set(found.values()) == {None}
    return unlisted or (bool(values) and not any(values))


_ABSENCE = {
    "before": ("comparison_hint",),
    "free": ("memory", "what_if"),
}
