"""Views of summaries, comparisons and verdicts for people to read."""

from marin_profile.reports.comparison import render_comparison
from marin_profile.reports.markdown import render_markdown
from marin_profile.reports.verdict import render_change

__all__ = ["render_change", "render_comparison", "render_markdown"]
