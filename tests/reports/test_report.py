"""The report as a whole."""

from __future__ import annotations

import re

from syrupy.assertion import SnapshotAssertion

from builders_summary import (
    build_summary,
    build_v1_summary,
    gap,
    hot_op,
    late_host,
    ledger,
    no_steps,
    region,
    step,
    step_time,
    uneven_steps,
)
from marin_profile.reports.headline import headline
from marin_profile.reports.report import render_markdown
from marin_profile.schema import Host, ProfileSummary, parse_summary


def sections(report: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)\n", report, flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}


def cells_per_row(report: str) -> set[tuple[int, int]]:
    """(cells of a table's header, cells of its row) over all tables."""
    found = set()
    header: int | None = None
    for line in report.splitlines():
        if not line.startswith("|"):
            header = None
            continue
        width = len(re.findall(r"(?<!\\)\|", line))
        header = header or width
        found.add((header, width))
    return found


def test_report(snapshot: SnapshotAssertion) -> None:
    assert render_markdown(build_summary()) == snapshot


def test_report_of_an_older_summary(snapshot: SnapshotAssertion) -> None:
    assert render_markdown(build_v1_summary()) == snapshot


def test_steps_that_stand_out_are_listed_with_their_cause() -> None:
    """The summary's docstring: one checkpoint of 2,000 us over four periods."""
    found = sections(render_markdown(build_summary(step_time=uneven_steps())))["Steps"]
    assert (
        "Typical period (median) 1.00 ms, mean 1.50 ms over 4 whole periods: step 7 waited for "
        "host event save_checkpoint, which adds 500.00 us to the mean."
    ) in found
    assert (
        "| 7 | 3.00 ms | 2.00 ms | host event | 1.99 ms | `save_checkpoint` | `fusion.7` |"
    ) in found
    assert "Typical" not in sections(render_markdown(build_summary()))["Steps"]


def test_only_the_worst_of_many_outliers_are_shown() -> None:
    one = uneven_steps().outliers[0]
    many = [
        one.model_copy(update={"index": at, "step_num": None, "excess": 10.0 * at, "cause": None})
        for at in range(15)
    ]
    made = uneven_steps().model_copy(update={"outliers": many})
    found = sections(render_markdown(build_summary(step_time=made), top_k=3))["Steps"]
    listed = re.findall(r"^\| (\d+) \| 3.00 ms \| .* \| not known \|", found, re.MULTILINE)
    assert listed == ["14", "13", "12"]
    assert "12 outliers left out." in found


def test_the_answer_comes_first() -> None:
    lines = render_markdown(build_summary()).splitlines()
    assert lines[0] == "# Profile report"
    assert lines[2] == headline(build_summary())


def test_doubts_stand_between_the_answer_and_the_advice() -> None:
    summary = build_summary()
    doubts = [f"Something is odd, {at}." for at in range(5)]
    trace = summary.trace_overview.model_copy(update={"doubts": doubts})
    lines = render_markdown(summary.model_copy(update={"trace_overview": trace})).splitlines()
    assert lines[4:8] == [*(f"- Doubt: Something is odd, {at}." for at in range(3)), ""]
    assert lines[8] == "2 doubts left out."
    assert lines[10].startswith("What to try first")


def test_the_order_of_the_sections() -> None:
    assert list(sections(render_markdown(build_summary()))) == [
        "What to try next",
        "Steps",
        "Device time",
        "Regions",
        "Top ops",
        "Op families",
        "Collectives",
        "Gaps",
        "Gaps by region",
        "Roofline",
        "Coverage and warnings",
        "Run",
        "Provenance",
    ]


def test_a_report_survives_the_file() -> None:
    summary = build_summary()
    assert render_markdown(parse_summary(summary.to_json())) == render_markdown(summary)


def test_empty_lists_say_why() -> None:
    empty = build_summary(
        step_time=no_steps(),
        hot_ops=[],
        op_groups=[],
        semantic_families=[],
        communication_ops=[],
        collectives=[],
        gap_before_ops=[],
        gap_region_contexts=[],
        hierarchical_regions=[],
        optimization_candidates=[],
        device_ledger=[],
        coverage=None,
        hosts=[],
        roofline=None,
    )
    found = sections(render_markdown(empty))
    for title in ("Steps", "Regions", "Top ops", "Op families", "Collectives", "Gaps"):
        assert "|" not in found[title]
        assert found[title].endswith(".")
    assert found["Steps"].startswith("No steps were found")
    assert found["Collectives"] == "No collective was found among the device ops."
    assert "Roofline" not in found


def test_every_list_states_its_window() -> None:
    found = sections(render_markdown(build_summary()))
    lists = ("Regions", "Top ops", "Op families", "Collectives", "Gaps", "Gaps by region")
    for title in lists:
        assert found[title].startswith("Basis: whole capture")
    found = sections(render_markdown(build_summary(list_basis={})))
    for title in lists:
        assert found[title].startswith("Basis: not stated")


def test_64_devices_and_hosts_stay_readable() -> None:
    summary = build_summary(
        device_ledger=[ledger(f"/device:TPU:{at}", host=f"h{at // 4}") for at in range(64)],
        hosts=[Host(host=f"h{at}", file=f"h{at}.xplane.pb", sha256="ab") for at in range(64)],
        step_time=step_time(steps=[step(at) for at in range(500)]),
        hot_ops=[hot_op(f"fusion.{at}", 1.0) for at in range(500)],
        gap_before_ops=[gap(f"fusion.{at}", 1.0) for at in range(500)],
        hierarchical_regions=[region(f"r{at}", 1.0, 1.0) for at in range(500)],
    )
    report = render_markdown(summary)
    assert len(report.splitlines()) < 256
    found = sections(report)
    assert "54 devices left out." in found["Device time"]
    assert "48 hosts left out." in found["Provenance"]
    assert "468 steps left out." in found["Steps"]
    assert "490 ops left out." in found["Top ops"]
    assert "480 regions left out." in found["Regions"]


def test_top_k_limits_the_lists() -> None:
    found = sections(render_markdown(build_summary(), top_k=1))
    assert found["Top ops"].endswith("4 ops left out.")
    assert found["Gaps"].endswith("2 ops left out.")


def test_regions_are_a_tree() -> None:
    summary = build_summary(
        hierarchical_regions=[
            region("b", 9.0, 0.0),
            region("a", 5.0, 0.0),
            region("a=>deep", 5.0, 5.0),
            region("b=>small", 3.0, 3.0),
            region("b=>large", 6.0, 6.0, backward=6.0),
        ]
    )
    rows = sections(render_markdown(summary))["Regions"]
    names = re.findall(r"^\| ((?:&nbsp;)*`\w+`)", rows, re.MULTILINE)
    tree = [name.replace("&nbsp;", ".") for name in names]
    assert tree == ["`b`", "..`large`", "..`small`", "`a`", "..`deep`"]


HOSTILE = 'evil|`"<script>alert(1)</script>\n## Fake\x00\u202e[a](b)' + "n" * 40_000


def _hostile_summary() -> ProfileSummary:
    clean = build_summary()
    text = clean.to_json()
    summary = parse_summary(text)
    op = hot_op(
        HOSTILE,
        9000.0,
        shape_signature=HOSTILE,
        tf_op_path=HOSTILE,
        **{"pass": HOSTILE},
    )
    overview = summary.trace_overview.model_copy(update={"quality_warnings": [HOSTILE]})
    candidate = summary.optimization_candidates[0].model_copy(
        update={
            "title": HOSTILE,
            "rationale": HOSTILE,
            "evidence": [HOSTILE],
            "suggestions": [HOSTILE],
        }
    )
    return summary.model_copy(
        update={
            "source_path": HOSTILE,
            "hot_ops": [op],
            "gap_before_ops": [gap(HOSTILE, 1.0, marker_op=HOSTILE + "m")],
            "hierarchical_regions": [region(HOSTILE, 1.0, 1.0)],
            "trace_overview": overview,
            "optimization_candidates": [candidate],
            "device_ledger": [ledger(HOSTILE, host=HOSTILE, kind=HOSTILE)],
            "list_basis": dict.fromkeys(summary.list_basis, HOSTILE),
            "step_time": step_time(source=HOSTILE, annotation=HOSTILE),
            "hosts": [Host(host=HOSTILE, file=HOSTILE, sha256=HOSTILE, chosen_because=HOSTILE)],
        }
    )


def test_hostile_names_stay_text() -> None:
    report = render_markdown(_hostile_summary())
    assert "<script>" not in report
    assert not re.search(r"^\s*#+ Fake", report, re.MULTILINE)
    assert all(header == width for header, width in cells_per_row(report))
    assert all(line.isprintable() for line in report.splitlines())
    assert max(map(len, report.splitlines())) < 3000
    report.encode("utf-8")


def test_a_cut_trace_comes_first() -> None:
    overview = build_summary().trace_overview.model_copy(update={"suspected_truncation": True})
    found = sections(render_markdown(build_summary(trace_overview=overview)))
    assert found["Coverage and warnings"].startswith("**The trace looks cut or damaged")
    assert found["What to try next"].startswith("The capture is cut or damaged: ")


def test_a_warning_appears_once() -> None:
    warning = "the file is cut"
    overview = build_summary().trace_overview.model_copy(update={"quality_warnings": [warning]})
    host = build_summary().hosts[0].model_copy(update={"warnings": [warning, "another"]})
    report = render_markdown(build_summary(trace_overview=overview, hosts=[host]))
    assert report.count(warning) == 1
    assert "- Warning: host0: another" in report


def test_who_is_late_stands_in_the_first_paragraph_and_has_a_section() -> None:
    report = render_markdown(late_host())
    assert report.splitlines()[2].endswith("3.8 % is waiting in collectives for host1.")
    section = sections(report)["Stragglers"]
    assert "Of 1.60 ms of exposed communication, 300.00 us (18.8 %) is waiting" in section
    assert "Straggler: `host1`; the wait for it is 3.8 % of all device time." in section
    assert "| `host1` | 1 | 0 us | 400.00 us | 100.00 us | n/a | yes |" in section
    assert "| `host0 /device:TPU:0` | 0 of 8 | 400.00 us | 0 us | 0 us | n/a | no |" in section
    assert (
        "| `host1 /device:TPU:0` | 8 of 8 | 0 us | 400.00 us | 100.00 us | n/a | with its host |"
        in (section)
    )
    assert "Stragglers" not in sections(render_markdown(build_summary()))


def test_bounds_and_missing_members_are_called_so() -> None:
    seen = [
        one.model_copy(
            update={
                "group_size": 8,
                "members_seen": 4,
                "wait_is_lower_bound": True,
                "bandwidth_is_lower_bound": True,
            }
        )
        for one in build_summary().collectives[:1]
    ]
    section = sections(render_markdown(build_summary(collectives=seen)))["Collectives"]
    assert "| 4 of 8 seen |" in section
    assert "| at least 100.00 us | at least 50.00 GB/s | at least 50.00 GB/s |" in section
