"""Views of a summary for people to read."""

from marin_profile.reports.markdown import render_markdown

__all__ = ["render_markdown"]
