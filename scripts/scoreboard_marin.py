"""marin.profiling as a peer, twice: its `query` asked in words, and its summary's best field.

The second is what someone finds who knows the summary by heart.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scoreboard_judge import Found, Read, Reply
from scoreboard_questions import NAMES, Question
from scoreboard_truth import COUNT, SHARE, US, Absent, Nothing, Truth

Summary = Mapping[str, Any]
Reader = Callable[[Summary, Mapping[str, str]], dict[str, Read]]

# One process answers all: the import takes seconds. What it prints for each is what `query` prints.
_DRIVER = """
import json, sys
from pathlib import Path
from marin.profiling.cli import _json_text, _load_summary
from marin.profiling.query import query_profile_summary
asked = json.load(sys.stdin)
kept = {path: _load_summary(Path(path)) for path in {path for path, _ in asked}}
json.dump([_json_text(query_profile_summary(kept[path], text)) for path, text in asked], sys.stdout)
"""


class Marin:
    def __init__(self, python: Path, folders: Mapping[str, Path], into: Path) -> None:
        self.python = python
        self.paths = {one: into / f"marin-{one}.json" for one in folders}
        for one, folder in folders.items():
            command = [str(python), "-m", "marin.profiling.cli", "summarize"]
            where = ["--profile-dir", str(folder), "--output", str(self.paths[one])]
            subprocess.run([*command, *where], capture_output=True, check=True)
        self.summaries = {one: json.loads(path.read_text()) for one, path in self.paths.items()}
        self._answers: dict[tuple[str, str], str] = {}

    def hear(self, asked: list[tuple[str, str]]) -> None:
        """Put all these questions, each over its capture."""
        given = json.dumps([(str(self.paths[one]), text) for one, text in asked])
        command = [str(self.python), "-c", _DRIVER]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        last = done.stdout[done.stdout.index("[") :]
        self._answers = dict(zip(asked, json.loads(last), strict=True))

    def in_words(self, question: Question, capture: str, truth: Truth) -> tuple[Reply, str]:
        text = self._answers[capture, question.words(capture)]
        query = json.loads(text)["query_type"]
        refused = query in ("bound_analysis", "comparison_hint")
        fits = question.key in SHOWS.get(query, ())
        if refused or not fits:
            return Reply(refused=refused, fits=fits, chars=len(text)), f"query {query}"
        reply = self._read(question.key, _first_ten(self.summaries[capture]), capture, truth)
        return Reply(none=reply.none, parts=reply.parts, chars=len(text)), f"query {query}"

    def by_field(self, question: Question, capture: str, truth: Truth) -> tuple[Reply, str]:
        if question.key not in FIELDS:
            return Reply(refused=True, fits=isinstance(truth, Absent)), "no field"
        return self._read(question.key, self.summaries[capture], capture, truth), "field"

    def _read(self, key: str, summary: Summary, capture: str, truth: Truth) -> Reply:
        parts = FIELDS[key](summary, NAMES[capture])
        empty = not any(read not in (None, []) for read in parts.values())
        zero = all(not one.value for one in parts.values() if isinstance(one, Found))
        return Reply(none=isinstance(truth, Nothing) and (empty or zero), parts=parts)


def _first_ten(summary: Summary) -> Summary:
    """Its answers show ten rows."""
    return {key: value[:10] if isinstance(value, list) else value for key, value in summary.items()}


def _found(value: float | None, unit: str) -> Read:
    return None if value is None else Found(value, unit)


def _step(key: str) -> Reader:
    return lambda one, names: {"time": _found(one["step_time"]["steady_state_steps"][key], US)}


def _count(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    number = one["step_time"]["all_steps"]["count"]
    return {"count": Found(number, COUNT) if number else None}


def _slowest(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    return {"step": None, "time": _found(one["step_time"]["all_steps"]["max"], US)}


def _top(*leave_out: str) -> Reader:
    def read(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
        rows = [row for row in one["hot_ops"] if row["category"] not in leave_out]
        return {"names": [row["name"] for row in rows]}

    return read


def _op(part: str, key: str, unit: str = US) -> Reader:
    def read(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
        rows = [row for row in one["hot_ops"] if row["name"] in (names["op"], f"{names['op']}.kd")]
        if not rows or rows[0][key] is None:
            return {part: None}
        return {part: rows[0][key] if part == "name" else Found(rows[0][key], unit)}

    return read


def _named(op: str) -> Reader:
    return lambda one, names: {
        "names": [row["name"] for row in one["hot_ops"] if op in row["name"]]
    }


def _share(*kinds: str) -> Reader:
    def read(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
        shares = one["time_breakdown"]
        return {"share": Found(sum(shares[kind]["share_of_total"] for kind in kinds), SHARE)}

    return read


def _largest(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    shares = {
        kind: row["share_of_total"]
        for kind, row in one["time_breakdown"].items()
        if isinstance(row, Mapping)
    }
    most = max(shares, key=shares.__getitem__)
    return {"name": {"stall": "idle", "host": "transfer"}.get(most, most)}


def _collective(part: str, key: str, kind: str) -> Reader:
    def read(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
        rows = [row[key] for row in one["communication_ops"] if row["collective"] == kind]
        return {part: Found(sum(rows), US) if rows else None}

    return read


def _biggest(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    rows = one["communication_ops"]
    return {"name": rows[0]["collective"] if rows else None}


def _copies(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    rows = [row["total_duration"] for row in one["semantic_families"] if row["family"] == "copy"]
    return {"time": Found(sum(rows), US) if rows else None}


def _gap(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    row = max(one["gap_before_ops"], key=lambda row: row["max_gap_duration"], default=None)
    if row is None:
        return {"time": None, "name": None}
    return {"time": Found(row["max_gap_duration"], US), "name": row["marker_op"]}


def _part(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    rows = one["hierarchical_regions"]
    row = max(rows, key=lambda row: row["exclusive_duration"], default=None)
    return {"name": row["path"] if row else None}


def _region(wanted: str) -> Reader:
    def read(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
        region = wanted.format_map(names)
        for row in one["hierarchical_regions"]:
            if region in row["path"].split("=>"):
                return {"time": Found(row["inclusive_duration"], US)}
        return {"time": None}

    return read


def _try(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    rows = one["optimization_candidates"]
    return {"name": " ".join([rows[0]["title"], *rows[0]["evidence"]]) if rows else None}


def _cut(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    return {"whole": "cut" if one["trace_overview"]["suspected_truncation"] else "whole"}


def _hardware(one: Summary, names: Mapping[str, str]) -> dict[str, Read]:
    run = one["run_metadata"]
    return {"name": run["hardware_type"], "count": _found(run["num_devices"], COUNT)}


FIELDS: dict[str, Reader] = {
    "step": _step("median"),
    "step_usual": _step("median"),
    "step_mean": _step("mean"),
    "step_count": _count,
    "step_slowest": _slowest,
    "top3": _top(),
    "top_typo": _top(),
    "top_one": _top(),
    "top_not_comm": _top("communication"),
    "op_total": _op("time", "total_duration"),
    "op_count": _op("count", "count", COUNT),
    "op_mean": _op("time", "avg_duration"),
    "op_source": _op("name", "source_file"),
    "op_none": _named("flash_attention_kernel"),
    "op_none_typo": _named("ragged_conv_fusion.77"),
    "idle": _share("stall"),
    "compute": _share("compute"),
    "not_compute": _share("communication", "host", "stall", "other"),
    "exposed": _share("communication"),
    "largest": _largest,
    "host_transfer": _share("host"),
    "ar_total": _collective("time", "total_duration", "all-reduce"),
    "biggest": _biggest,
    "rs_none": _collective("time", "total_duration", "reduce-scatter"),
    "memcpy": _copies,
    "longest_gap": _gap,
    "part": _part,
    "region": _region("{region}"),
    "region_none": _region("layer_99"),
    "try_first": _try,
    "cut": _cut,
    "hardware": _hardware,
}

_OPS = ("top3", "top_typo", "top_one", "top_not_comm", "op_total", "op_count", "op_mean")
SHOWS: dict[str, tuple[str, ...]] = {
    "top_ops": (*_OPS, "op_source", "op_none", "op_none_typo"),
    "compute_vs_communication": ("compute", "exposed", "largest"),
    "collective_breakdown": ("ar_total", "biggest", "rs_none"),
    "pre_op_gap": ("longest_gap",),
    "hierarchical_regions": ("part", "region", "region_none"),
    "bound_analysis": ("bound",),
    "comparison_hint": ("before",),
    "optimization_candidates": ("try_first",),
}
