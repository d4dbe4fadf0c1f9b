"""Captures over time: a store of records; their trend, noise and changes; views of them."""

from marin_profile.history.record import HistoryRecord, record_of
from marin_profile.history.store import History, append, read

__all__ = ["History", "HistoryRecord", "append", "read", "record_of"]
