"""Everything that awaits: passes over a cluster, the lease, and the calls that apply plans."""
