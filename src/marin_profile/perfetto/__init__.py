"""A capture in Perfetto: the link to a step or an op in it, and a server of its one file.

In goes a trace JSON of a capture, out come a link and what Perfetto fetches.
"""

from __future__ import annotations

from marin_profile.perfetto.places import Place, place_of, trace_file
from marin_profile.perfetto.server import PORT, TraceServer

__all__ = ["PORT", "Place", "TraceServer", "place_of", "trace_file"]
