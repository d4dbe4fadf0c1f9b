"""Many captures -> one table and one document: what differs between runs, hosts and hardware."""
