"""The shell: everything that awaits."""
