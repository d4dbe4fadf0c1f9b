"""What knows nothing of profiles: errors, integer columns, intervals, storage, text."""
