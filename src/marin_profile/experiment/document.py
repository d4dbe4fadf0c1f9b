"""An experiment as a document: the answer, the ranked arms, what each one is, and what failed."""

from __future__ import annotations

import math

from marin_profile.base.text import NOT_KNOWN, duration, number, plural
from marin_profile.documents.model import Block, Document, Paragraph, bullets, sections, table
from marin_profile.documents.text import code, plain, strong
from marin_profile.experiment import words
from marin_profile.experiment.findings import ArmResult, Experiment
from marin_profile.reports.hlo import hlo_sentence

HASH = 12


def experiment_document(found: Experiment) -> Document:
    return Document(
        title="Experiment",
        lead=(
            Paragraph(strong(plain(words.headline(found), None))),
            Paragraph(_spent(found)),
        ),
        sections=sections(
            (
                ("Arms", _arms(found)),
                ("What changed most", _changed(found)),
                ("What XLA did differently", _hlo(found)),
                ("Cannot be compared", _caveats(found)),
                ("Runs that failed", _problems(found)),
                ("How to run an arm again", _commands(found)),
            )
        ),
    )


def _spent(found: Experiment) -> str:
    warm = (
        f" after {plural(found.warmup_rounds, 'round')} for warming up"
        if found.warmup_rounds
        else ""
    )
    minutes = plural(math.ceil(found.seconds / 60), "minute")
    return (
        f"{plural(found.rounds, 'round')} of at most {found.most_rounds}{warm}; "
        f"{plural(found.captures, 'capture')}, {minutes} of runs. "
        f"Compared is the {words.STEPS[found.measure]} of each arm with the control's of the same "
        f"round ({duration(found.control.step_time)} in its median capture)."
    )


def _arms(found: Experiment) -> list[Block]:
    rows = [
        [
            number(arm.rank),
            code(arm.arm),
            words.change(arm.effect),
            _interval(arm),
            plain(words.verdict(found, arm)),
            words.change(arm.other_effect),
            duration(arm.step_time),
            words.memory(arm),
            plain(words.changed(arm)),
            number(arm.captures),
        ]
        for arm in found.arms
    ]
    headers = [
        "rank",
        "arm",
        words.STEPS[found.measure],
        "95 % interval",
        "verdict",
        f"{words.OTHER[found.measure]} step",
        "median capture",
        "memory at the peak",
        "changed most",
        "captures",
    ]
    return [
        Paragraph(
            "Changes are against the control. The intervals hold for all arms together and however "
            "often one looked; the other step's change has none."
        ),
        table(headers, rows, "rlrllrrllr"),
    ]


def _interval(arm: ArmResult) -> str:
    if arm.low is None or arm.high is None:
        return NOT_KNOWN
    return f"{arm.low:+.1f} to {arm.high:+.1f} %"


def _changed(found: Experiment) -> list[Block]:
    told = []
    for arm in found.arms:
        if arm.changed is None:
            if arm.why_not_changed and arm.captures:
                told.append(f"{code(arm.arm)}: not known: {plain(arm.why_not_changed)}")
            continue
        share = arm.changed.share_of_change
        of = "" if share is None else f", {100 * share:.0f} % of the change of the mean step"
        told.append(
            f"{code(arm.arm)}: {arm.changed.kind} {plain(words.changed(arm))} per step and device"
            f"{of}"
        )
    if not told:
        return []
    note = "Between the captures of the arm and the control's of the same rounds, told from noise."
    return [Paragraph(note), *bullets(told)]


def _hlo(found: Experiment) -> list[Block]:
    told = []
    for arm in found.arms:
        if arm.hlo is not None:
            why_not = arm.hlo.cannot_answer
            text = hlo_sentence(arm.hlo) if why_not is None else plain(why_not, None)
            told.append(f"{code(arm.arm)}: {text}")
    if not told:
        return []
    return [Paragraph("Between the median captures of the arm and of the control."), *bullets(told)]


def _caveats(found: Experiment) -> list[Block]:
    return bullets(
        f"{code(arm.arm)}: {plain(caveat)}" for arm in found.arms for caveat in arm.caveats
    )


def _problems(found: Experiment) -> list[Block]:
    every = [*found.control.problems, *(one for arm in found.arms for one in arm.problems)]
    return bullets(plain(f"{problem}.", None) for problem in every)


def _commands(found: Experiment) -> list[Block]:
    return [
        Paragraph("Values of environment variables are not shown; fill them in."),
        *bullets(
            (
                f"{code(found.control.arm)}: {code(found.control.command, None)}",
                *(
                    f"{code(arm.arm)}{_source(arm)}: {code(arm.command, None)}"
                    for arm in found.arms
                ),
            )
        ),
    ]


def _source(arm: ArmResult) -> str:
    known = [
        f"commit {arm.commit[:HASH]}" if arm.commit else "",
        f"patch {plain(arm.patch)}" if arm.patch else "",
    ]
    told = ", ".join(one for one in known if one)
    return f" ({told})" if told else ""
