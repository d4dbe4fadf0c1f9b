"""An experiment's files: `experiment.json`, `.md` and `.html`, from its journal and summaries."""

from __future__ import annotations

from pathlib import Path

from marin_profile.base.durable import write_whole
from marin_profile.base.errors import ProfileError, UsageError
from marin_profile.comparison import Comparison
from marin_profile.documents import html, markdown
from marin_profile.experiment.document import experiment_document
from marin_profile.experiment.explained import explained
from marin_profile.experiment.findings import Experiment, findings
from marin_profile.experiment.measuring import out_of, summary_path
from marin_profile.experiment.outcome import Outcome
from marin_profile.experiment.places import Sources
from marin_profile.experiment.plan import Plan
from marin_profile.experiment.runner import progress_in
from marin_profile.schema import ProfileSummary, load_summary

JSON_FILE, REPORT_FILE, PAGE_FILE = "experiment.json", "experiment.md", "experiment.html"


def write_report(plan: Plan, sources: Sources, output: Path) -> Experiment:
    """Raises UsageError where the folder cannot be written, BrokenInputError for a damaged
    journal."""

    def load(outcome: Outcome) -> ProfileSummary | None:
        try:
            return load_summary(summary_path(outcome.run, output))
        except ProfileError:
            return None

    def explain(before: Outcome, after: Outcome) -> Comparison | None:
        one, two = (out_of(plan, outcome.run, output) for outcome in (before, after))
        return explained(one, two, warmup_steps=plan.warmup_steps)

    found = findings(plan, sources, progress_in(plan, output), load, explain)
    document = experiment_document(found)
    files = {
        JSON_FILE: found.to_json(),
        REPORT_FILE: markdown.render(document),
        PAGE_FILE: html.render(document),
    }
    try:
        write_whole(output, {name: text.encode() for name, text in files.items()})
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}.") from error
    return found
