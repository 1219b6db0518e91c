"""Objects: one renderer for each kind of object that a graph owns."""
