"""`marin_profile.open(path)`: a capture, or its summary, in Python and notebooks.

In goes what a user names, out comes a `Profile`: answers, tables, advice and comparisons.
"""

from __future__ import annotations

from marin_profile.opened.profile import Profile, open
from marin_profile.opened.table import Table

__all__ = ["Profile", "Table", "open"]
