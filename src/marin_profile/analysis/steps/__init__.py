"""Which steps a capture holds, and when each ran on each device."""
