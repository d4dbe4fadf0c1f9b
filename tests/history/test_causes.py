"""A change carries what accounts for it, where the summaries around it are at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders_pairs import capture, changed
from marin_profile.base.errors import NotFoundError
from marin_profile.history import History, HistoryRecord, record_of
from marin_profile.history.causes import Cause, Part
from marin_profile.history.findings import TrendFindings, findings_of
from marin_profile.history.summaries import SummaryStore, summary_store
from marin_profile.history.words import cause as in_words
from marin_profile.schema import ProfileSummary, TraceProvenance

PLAIN = capture()
# Per step of 100 us the second norm takes 7 us longer, and the step with it.
LONGER = capture(changed("rsqrt", 6, length=9), period=107)
FIRST_SLOW = 9


def digest(number: int) -> str:
    return f"{number:064x}"


def named(summary: ProfileSummary, number: int) -> ProfileSummary:
    return summary.model_copy(
        update={"trace_provenance": TraceProvenance(trace_sha256=digest(number))}
    )


def record(number: int, summary: ProfileSummary, **changes: Any) -> HistoryRecord:
    values = {
        "time": f"2026-11-{number + 1:02}T00:00:00.000000Z",
        "time_source": "capture",
        "source_path": None,
    }
    made = record_of(named(summary, number), label="main")
    assert made.median is not None
    return made.model_copy(update=values | changes)


RECORDS = [record(at, PLAIN if at < FIRST_SLOW else LONGER) for at in range(2 * FIRST_SLOW)]


def found(store: SummaryStore, records: list[HistoryRecord] = RECORDS) -> TrendFindings:
    [one] = findings_of(History(tuple(records)), summaries=store).groups
    return one.trends[0]


def keep(folder: Path, *numbers: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        summary = named(PLAIN if number < FIRST_SLOW else LONGER, number)
        (folder / f"{number}.json").write_text(summary.to_json())


def test_the_region_that_grew_is_named(tmp_path: Path) -> None:
    keep(tmp_path / "a/b", 8, 9)
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "torn.json").write_text(f'{{"trace_sha256": "{digest(8)}"')
    trend = found(SummaryStore((str(tmp_path),)))
    [change] = trend.trend.changes
    [cause] = trend.causes
    assert change.index == FIRST_SLOW
    assert (cause.before, cause.after) == (RECORDS[8], RECORDS[9])
    assert cause.step_delta == pytest.approx(7.0)
    assert cause.parts[0].name.endswith("norm")
    assert cause.parts[0].delta == pytest.approx(7.0)
    assert cause.parts[0].share == pytest.approx(1.0)
    assert (cause.why_not, cause.caveats) == (None, ())
    text = in_words(trend.trend, change, cause)
    assert text.startswith("since 2026-11-10 the typical step is +7.0 %: mostly ")
    assert text.endswith("norm +7.00 us")


def test_the_nearest_at_hand_is_taken_but_no_outlier(tmp_path: Path) -> None:
    keep(tmp_path, 6, 7, 10)
    records = [
        *RECORDS[:7],
        record(7, PLAIN, median=150.0),
        *RECORDS[8:],
    ]
    [cause] = found(SummaryStore((str(tmp_path),)), records).causes
    assert (cause.before, cause.after) == (RECORDS[6], RECORDS[10])


def test_where_summaries_lack_the_words_say_which(tmp_path: Path) -> None:
    keep(tmp_path, 8, 17)
    trend = found(SummaryStore((str(tmp_path),)))
    assert trend.causes == (
        Cause(
            why_not="to see what accounts for it, name a folder with the summaries just after "
            f"(trace {digest(9)[:12]}) with --summaries, or keep them in 'summaries' beside the "
            "history"
        ),
    )
    assert in_words(trend.trend, trend.trend.changes[0], trend.causes[0]) == trend.causes[0].why_not


def test_summaries_beside_the_history_and_beside_the_source(tmp_path: Path) -> None:
    keep(tmp_path / "summaries", 8)
    source = tmp_path / "run/profiler/plugins/profile/2026_11_10_00_00_00"
    source.mkdir(parents=True)
    summary = tmp_path / "run/profiler/profile_summary.json"
    summary.write_text(named(LONGER, 9).to_json())
    records = [*RECORDS[:9], record(9, LONGER, source_path=str(source)), *RECORDS[10:]]
    for target in (tmp_path / "h.jsonl", tmp_path):
        [cause] = found(summary_store(str(target)), records).causes
        assert cause.parts
        assert cause.after == records[9]
    assert summary_store("memory://h", ["a"]) == SummaryStore(("a",))


def test_a_named_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        found(SummaryStore((str(tmp_path / "no"),)))


def test_captures_that_cannot_be_compared_say_so(tmp_path: Path) -> None:
    for number, summary, hardware in ((8, PLAIN, "TPU v5"), (9, LONGER, "TPU v4")):
        run = summary.run_metadata.model_copy(update={"hardware_type": hardware})
        other = named(summary, number).model_copy(update={"run_metadata": run})
        (tmp_path / f"{number}.json").write_text(other.to_json())
    trend = found(SummaryStore((str(tmp_path),)))
    assert trend.causes[0].caveats
    text = in_words(trend.trend, trend.trend.changes[0], trend.causes[0])
    assert "(not comparable: Hardware differs: " in text


def test_words_of_several_parts_and_of_none() -> None:
    trend = found(SummaryStore())
    change = trend.trend.changes[0]
    one, two = RECORDS[8], RECORDS[9]
    parts = (Part("a", 3.0, 0.4), Part("b", 2.0, 0.3))
    text = in_words(trend.trend, change, Cause(one, two, 7.0, parts))
    assert (
        text == "since 2026-11-10 the typical step is +7.0 %: among others a +3.00 us, b +2.00 us"
    )
    nothing = Cause(one, two, 7.0, why_not="no region or op accounts for a tenth of it")
    assert in_words(trend.trend, change, nothing).endswith("a tenth of it")
