"""Reports: what people are told of a workload: its state, why an object exists, which events are recorded."""
