"""The command line: thin commands, the one place that chooses implementations, and how answers are shown."""
