"""The shell of the engine: everything that awaits."""
