"""What every record of a summary is, and the two windows that its lists cover."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = "profile_summary.v1"
EPOCH_UTC = "1970-01-01T00:00:00.000000Z"

CAPTURE = "capture"
STEADY = "steady"


class Record(BaseModel):
    """Base of all records: frozen, and keeps fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)
