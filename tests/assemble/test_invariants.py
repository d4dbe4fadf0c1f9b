"""Figures that contradict each other are never given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from builders_xspace import Space
from marin_profile import schema, summarize
from marin_profile.analysis.host import HostPart
from marin_profile.analysis.ledger import Ledger
from marin_profile.analysis.memory import ProgramMemory, ScopeMemory
from marin_profile.assemble import CaptureFacts, SourceFile, assemble, invariants
from marin_profile.base.errors import InternalError
from marin_profile.cli import run

FILE = SourceFile(host="host-0", name="h.xplane.pb", sha256="0123456789abcdef", reason="only one")
FACTS = CaptureFacts("a/capture", (FILE,), (), tool_version="1.2", jax_version="")


def part(devices: int = 2) -> HostPart:
    """Some devices, three steps of 100 us with 60 us of work each, launched in 10 us."""
    space = Space()
    host = space.host()
    for step in range(3):
        at = 100 * step
        host.marker(step, at, 90)
        host.call("PjitFunction(f)", at, 10)
        host.call("Execute", at + 2, 3, run_id=step)
        for device in range(devices):
            host.cpu_op("fusion", at + 10, 60, ordinal=device, run_id=step, thread=device)
    return space.analyse(warmup_steps=0)


def made(part: HostPart) -> schema.ProfileSummary:
    return assemble([part], FACTS, hot_op_limit=50, breakdown_mode="device_ledger")


def twice_the_self_time(part: HostPart) -> HostPart:
    return replace(part, ops=[replace(op, exclusive=2 * op.total) for op in part.ops])


def owns_too_little(part: HostPart) -> HostPart:
    return replace(part, ops=[replace(op, exposed=op.exposed - 1) for op in part.ops])


def works_for_longer_than_the_profile(part: HostPart) -> HostPart:
    """270 us of devices in a profile that ran for less than none."""
    return replace(part, span_ps=-(10**10))


def idle_without_a_cause(part: HostPart) -> HostPart:
    account = part.account_of_idle
    assert account is not None
    return replace(part, account_of_idle=replace(account, causes=account.causes[1:]))


def ends_before_it_begins(part: HostPart) -> HostPart:
    return replace(part, steps=replace(part.steps, end=part.steps.start - 1))


def more_alive_than_at_the_peak(part: HostPart) -> HostPart:
    row = ProgramMemory(
        program_id=7,
        module="jit_f",
        space="hbm",
        peak=10,
        instruction="",
        scope=(),
        pass_name="other",
        kinds=(6, 3, 0, 1),
        scopes=(ScopeMemory((), "other", 11, 2),),
        buffers=(),
        count=2,
        padding=None,
        is_whole=True,
    )
    return replace(part, memory=(row,))


@pytest.mark.parametrize(
    ("break_it", "name"),
    [
        (twice_the_self_time, "self time is part of the whole"),
        (owns_too_little, "ops own what the ledgers hold"),
        (works_for_longer_than_the_profile, "devices work while the profile runs"),
        (idle_without_a_cause, "causes sum to the idle time"),
        (more_alive_than_at_the_peak, "what is alive sums to the peak"),
        (ends_before_it_begins, "steps end after they begin"),
    ],
)
def test_a_contradiction_is_named_with_what_it_was_found_in(
    break_it: Callable[[HostPart], HostPart], name: str
) -> None:
    sound = part()
    made(sound)
    with pytest.raises(InternalError) as caught:
        made(break_it(sound))
    assert caught.value.invariant == name
    assert "h.xplane.pb (0123456789ab); marin-profile 1.2" in str(caught.value)


def changed(
    summary: schema.ProfileSummary, share: float, term: str = "compute"
) -> schema.ProfileSummary:
    (one, *rest) = summary.optimization_candidates
    update = {"ceiling_share": share, "ceiling_of": term}
    candidates = [one.model_copy(update=update), *rest]
    return summary.model_copy(update={"optimization_candidates": candidates})


def broken_by(
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[schema.ProfileSummary], schema.ProfileSummary],
    devices: int,
) -> set[str]:
    """Of the last two invariants those that a changed summary does not keep."""
    found: set[str] = set()

    def check(context, facts, summary) -> None:
        for name, holds in invariants.INVARIANTS[-2:]:
            if next(holds(context, change(summary)), ""):
                found.add(name)

    monkeypatch.setattr(invariants, "check", check)
    made(part(devices))
    return found


@pytest.mark.parametrize(
    ("share", "names"),
    [
        (1.1, {"advice claims no more than there is", "shares are within 0 and 1"}),
        (-0.1, {"shares are within 0 and 1"}),
    ],
)
def test_shares(monkeypatch, share: float, names: set[str]) -> None:
    def change(summary: schema.ProfileSummary) -> schema.ProfileSummary:
        return changed(summary, share)

    assert broken_by(monkeypatch, change, devices=1) == names
    # Of devices that share processors only the whole is known.
    assert broken_by(monkeypatch, change, devices=2) == names


@pytest.mark.parametrize(
    ("term", "most"),
    [("compute", 0.666), ("idle", 0.333), ("wait", 0.0), ("exposed_transfer", 0.0)],
)
def test_advice_claims_no_more_of_a_term_than_there_is(monkeypatch, term: str, most: float) -> None:
    """Of a steady window of 270 us 180 are work and 90 idle."""

    def alone(share: float) -> Callable[[schema.ProfileSummary], schema.ProfileSummary]:
        def change(summary: schema.ProfileSummary) -> schema.ProfileSummary:
            (one, *_) = changed(summary, share, term).optimization_candidates
            return summary.model_copy(update={"optimization_candidates": [one]})

        return change

    claims = "advice claims no more than there is"
    assert claims not in broken_by(monkeypatch, alone(most), devices=1)
    assert claims in broken_by(monkeypatch, alone(most + 0.01), devices=1)


def test_a_ledger_that_does_not_sum() -> None:
    with pytest.raises(InternalError, match="a ledger sums to its window"):
        Ledger(0, 100, 50, 0, 20, 10, 5, 16, {"all-reduce": 20}, {}, {"on_chip": 10})


def test_the_command_line_gives_no_figure_and_a_code_of_its_own(
    tmp_path, monkeypatch, capsys
) -> None:
    space = Space()
    space.tpu(0).op("fusion", 0, 10)
    space.write(tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00" / "h.xplane.pb")
    summarize(tmp_path)
    broken = (("figures agree", lambda context, summary: iter(["1 is 2"])),)
    monkeypatch.setattr(invariants, "INVARIANTS", broken)
    code = run(["summarize", "--profile-dir", str(tmp_path), "--output", str(tmp_path / "s.json")])
    assert code == 8
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "internal error: figures agree does not hold: 1 is 2; " in captured.err
    assert not (tmp_path / "s.json").exists()
