"""Views of summaries and comparisons for people to read."""

from marin_profile.reports.comparison import render_comparison
from marin_profile.reports.markdown import render_markdown

__all__ = ["render_comparison", "render_markdown"]
