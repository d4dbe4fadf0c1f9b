"""What knows nothing of profiles: errors, units, integer columns, intervals, storage, text."""
