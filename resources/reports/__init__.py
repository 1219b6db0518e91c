"""Reports: what users see of a workload: its state, why an object exists, where its fields come from, and its events."""
