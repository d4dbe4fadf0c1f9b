"""Captures without steps: per execution of a program, or over the whole window; by hand."""

from __future__ import annotations

from typing import Any

import pytest

from builders_pairs import capture
from builders_xspace import Space, summary_of
from marin_profile.comparison import compare
from marin_profile.comparison.executions import on_one_basis
from marin_profile.comparison.model import Comparison
from marin_profile.reports.comparison import comparison_headline, render_comparison
from marin_profile.schema import ProfileSummary

INIT = 5.0


def serving(
    runs: int, gemm: float, *, launched: bool = True, init: float = INIT, module: str = "jit_step"
) -> ProfileSummary:
    """Two GPUs run the program so often: a gemm, 10 us of all-reduce, 10 us of nothing. Before it
    another program ran once, for `init` us; what the host launched shows how often they ran."""
    space = Space()
    for ordinal in range(2):
        device = space.gpu(ordinal)
        if init:
            device.kernel("fill", 0, init, hlo_op="wrapped_fill", module="jit_init", program_id=1)
        for run in range(runs):
            at = 100 + run * (gemm + 20)
            scope = "jit(step)/mlp/dot_general"
            device.kernel("gemm", at, gemm, hlo_op="gemm", module=module, program_id=2, scope=scope)
            device.kernel("ncclDevKernel_AllReduce", at + gemm, 10, hlo_op="all-reduce.1",
                          module=module, program_id=2)  # fmt: skip
    host = space.host()
    for at in range(2 * runs if launched else 0):
        host.call(f"{module}:XLA GPU module", at, 1)
    return summary_of(space.analyse())


def another(summary: ProfileSummary, **changes: Any) -> ProfileSummary:
    """As the summary of other bytes."""
    provenance = summary.trace_provenance.model_copy(update={"trace_sha256": "ab" * 32})
    return summary.model_copy(update={"trace_provenance": provenance, **changes})


def ledger(found: Comparison) -> dict[str, tuple[float | None, float | None, float | None]]:
    assert found.attribution is not None
    return {row.name: (row.before, row.after, row.delta) for row in found.attribution.ledger.rows}


def test_per_execution_by_hand():
    """8 executions of 30 + 10 us before, 6 of 36 + 10 after; of 330 and 286 us of ops 97 % and 96 %
    are in them."""
    found = compare(serving(4, 30.0), another(serving(3, 36.0)))
    assert found.basis is not None
    assert (found.basis.kind, found.basis.program) == ("program", "jit_step")
    assert (found.basis.before_executions, found.basis.after_executions) == (8, 6)
    assert found.target is not None
    assert (found.target.basis, found.target.before, found.target.after) == ("program", 40.0, 46.0)
    assert ledger(found) == {
        "compute": (30.0, 36.0, 6.0),
        "exposed_communication": (10.0, 10.0, 0.0),
        "exposed_transfer": (0.0, 0.0, 0.0),
        "unattributed": (0.0, 0.0, 0.0),
    }
    assert found.attribution is not None
    first = found.attribution.ops.rows[0]
    assert (first.name, first.delta, first.share_of_target) == ("gemm", 6.0, 1.0)
    assert first.before_op is not None
    assert (first.before_op.count, first.before_op.duration) == (1.0, 30.0)
    # The other program is in no row.
    assert sum(row.before or 0.0 for row in found.attribution.ops.rows) == 40.0
    (collective,) = found.collectives
    assert (collective.exposed.before, collective.exposed.after) == (10.0, 10.0)
    assert found.gaps == []
    assert found.units["durations"] == "us per execution"
    assert comparison_headline(found) == (
        "No steps: compared per execution of jit_step (8 before, 6 after, over all devices), by op "
        "time alone, of which it has at least 97%. An execution takes 6.00 us longer (+15.0 %): "
        "40.00 us before, 46.00 us after."
    )
    steps = [one for one in found.comparability.caveats if one.about == "steps"]
    assert [(one.severity, one.sentence) for one in steps] == [
        ("note", "Neither capture shows steps.")
    ]
    text = render_comparison(found)
    assert "Per execution; the rows sum to the change of an execution." in text
    assert "step and device" not in text
    assert "op families" not in text


def test_more_executions_are_no_change():
    found = compare(serving(4, 30.0), another(serving(9, 30.0)))
    assert found.target is not None
    assert found.target.delta == 0.0
    assert "An execution takes as long as before: 40.00 us before" in comparison_headline(found)


def test_over_the_whole_window_by_hand():
    """Per device 4 x 50 - 10 = 190 us, of which 120 compute, 40 all-reduce, 30 idle; then 3 x 56 -
    10 = 158, of which 108, 30, 20."""
    sides = [serving(*one, launched=False, init=0.0) for one in ((4, 30.0), (3, 36.0))]
    found = compare(sides[0], another(sides[1]))
    assert found.basis is not None
    assert (found.basis.kind, found.basis.program) == ("capture", None)
    assert found.target is not None
    assert (found.target.before, found.target.after, found.target.delta) == (190.0, 158.0, -32.0)
    assert (found.target.before_devices, found.target.before_steps) == (2, 1)
    rows = ledger(found)
    assert rows["compute"] == (120.0, 108.0, -12.0)
    assert rows["exposed_communication"] == (40.0, 30.0, -10.0)
    assert rows["idle"] == (30.0, 20.0, -10.0)
    assert found.attribution is not None
    assert sum(row.delta or 0.0 for row in found.attribution.ops.rows) == -32.0
    (collective,) = found.collectives
    assert (collective.exposed.before, collective.exposed.after) == (40.0, 30.0)
    (gap,) = found.gaps
    assert (gap.name, gap.before, gap.after, gap.before_count) == ("gemm", 30.0, 20.0, 3.0)
    assert found.units["durations"] == "us per capture and device"
    assert comparison_headline(found) == (
        "No steps: compared over the whole captures, from a device's first op to its last, which "
        "may hold different amounts of work. A capture takes 32.00 us less on each device (-16.8 "
        "%): 190.00 us before, 158.00 us after."
    )
    blocking = {one.about for one in found.comparability.blocking}
    assert blocking == {"steps"}
    assert "One step on each side" not in render_comparison(found)


@pytest.mark.parametrize(
    "after",
    [
        serving(3, 36.0, module="jit_train"),
        serving(3, 36.0, launched=False),
        # 69 of 230 us on each device are the program's.
        serving(3, 13.0, init=161.0),
    ],
)
def test_a_program_that_one_side_lacks_is_not_compared(after):
    found = compare(serving(4, 30.0), another(after))
    assert found.basis is not None
    assert found.basis.kind == "capture"


def test_half_of_the_op_time_is_enough():
    """Each time 4 x 40 us beside 160."""
    found = compare(serving(4, 30.0, init=160.0), another(serving(4, 30.0, init=160.0)))
    assert found.basis is not None
    assert found.basis.kind == "program"


def test_of_two_halves_the_first_by_name():
    def halves(first: str) -> ProfileSummary:
        space = Space()
        device, host = space.gpu(0), space.host()
        for at, name in enumerate((first, "jit_b")):
            device.kernel(name, 20 * at, 10, hlo_op=name, module=name, program_id=at)
            host.call(f"{name}:XLA GPU module", at, 1)
        return summary_of(space.analyse())

    for name, expected in (("jit_a", "jit_a"), ("jit_c", "jit_b")):
        found = compare(halves(name), another(halves(name)))
        assert found.basis is not None
        assert found.basis.program == expected


def test_accounts_of_both_kinds_sum_up():
    """8 executions of 40 us; and 2 x (120 + 40 + 30)."""
    summary = serving(4, 30.0)
    (made,) = on_one_basis([summary], [summary]).before
    assert made.step_account is not None
    assert made.step_account.total_duration == 320.0
    bare = serving(4, 30.0, launched=False, init=0.0)
    (made,) = on_one_basis([bare], [bare]).before
    assert made.step_account is not None
    assert (made.step_account.total_duration, made.step_account.device_kind) == (380.0, "gpu")


def test_a_group_in_two_programs_has_no_count():
    """Both programs hold the same op: 10 of its 30 us are the smaller one's."""
    space = Space()
    device, host = space.gpu(0), space.host()
    for at, (name, length) in enumerate((("jit_b", 20), ("jit_a", 10))):
        device.kernel("k", 50 * at, length, hlo_op="k", module=name, program_id=at)
        host.call(f"{name}:XLA GPU module", at, 1)
    summary = summary_of(space.analyse())
    assert [row.name for row in summary.programs] == ["jit_b", "jit_a"]
    (made,) = on_one_basis([summary], [summary]).before
    (group,) = made.op_groups
    assert (group.owned_duration, group.account_count) == (20.0, None)


def test_several_captures_a_side():
    """40 and 44 us before, 46 and 50 after: 6 us longer."""
    before = [serving(4, gemm) for gemm in (30.0, 34.0)]
    after = [another(serving(3, gemm)) for gemm in (36.0, 40.0)]
    found = compare(before, after)
    assert found.basis is not None
    assert (found.basis.before_executions, found.basis.after_executions) == (16, 12)
    assert found.target is not None
    assert (found.target.before, found.target.after) == (42.0, 48.0)


@pytest.mark.parametrize(("lost", "is_compared"), [(1e-7, True), (1e-6, False)])
def test_ops_may_own_less_by_rounding(lost, is_compared):
    """Of a window of 380 us a billionth is 3.8e-7."""
    summary = serving(4, 30.0, launched=False, init=0.0)
    first, *others = summary.op_groups
    less = first.model_copy(update={"exposed_duration": first.exposed_duration - lost})
    found = compare(summary.model_copy(update={"op_groups": [less, *others]}), another(summary))
    assert (found.basis is not None) is is_compared


def test_steps_on_one_side_only():
    """Then whole windows are all that both have."""
    found = compare(capture(), another(serving(3, 36.0)))
    assert found.basis is not None
    assert found.basis.kind == "capture"
    assert found.basis.sentence.startswith("No steps on both sides: compared over the whole")
    assert "steps" in {one.about for one in found.comparability.blocking}


def test_steps_without_an_account_ask_for_another_summary():
    summary = capture()
    found = compare(summary.model_copy(update={"step_account": None}), another(summary))
    assert found.basis is None
    assert found.cannot_attribute is not None
    assert found.cannot_attribute.startswith("The before summary has no step account (it holds")


def unlike_hosts(runs: tuple[int, int], length: float) -> ProfileSummary:
    """Two hosts whose steps do not correspond, so that there is no account of steps."""
    parts = []
    for at, own in enumerate(runs):
        space = Space(f"host-{at}")
        host = space.host()
        for run in range(own):
            host.cpu_op("dot.1", 100 * run, length, ordinal=0, run_id=run, module="jit_step")
        parts.append(space.analyse(host=f"host-{at}", warmup_steps=0))
    return summary_of(*parts)


def test_hosts_without_common_steps_are_compared_per_execution():
    found = compare(unlike_hosts((2, 3), 30), another(unlike_hosts((4, 2), 33)))
    assert found.basis is not None
    assert found.basis.sentence == (
        "No step account on both sides: compared per execution of jit_step (5 before, 6 after, "
        "over all devices), by op time alone, of which it has at least 100%."
    )
    assert found.target is not None
    assert (found.target.before, found.target.after) == (30.0, 33.0)
    # These captures show steps.
    assert "steps" not in {one.about for one in found.comparability.caveats}


def test_ops_that_do_not_own_what_the_ledger_has_are_not_split():
    summary = serving(4, 30.0, launched=False)
    groups = [
        group.model_copy(update={"exposed_duration": group.exposed_duration - 1})
        for group in summary.op_groups
    ]
    found = compare(summary.model_copy(update={"op_groups": groups}), another(summary))
    assert found.basis is None
    assert found.cannot_attribute is not None


def test_without_a_ledger_there_is_nothing_to_compare_by():
    bare = serving(4, 30.0, launched=False).model_copy(update={"device_ledger": []})
    found = compare(bare, another(serving(3, 36.0)))
    assert found.basis is None
    assert found.cannot_attribute is not None
    assert found.cannot_attribute.startswith("The before summary has no step account")


def test_steps_are_compared_where_there_are_some():
    found = compare(capture(), another(capture()))
    assert found.basis is None
    assert found.units["durations"] == "us per step and device"
