"""The two file formats of a JAX profile, under the names that `source_format` has."""

XPLANE = "xplane_pb"
TRACE_JSON = "perfetto_trace_json"
