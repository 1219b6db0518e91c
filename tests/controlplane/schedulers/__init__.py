"""Real schedulers beside a real control plane: how they are built, started on it and given what they need."""
