"""Children: one renderer for each kind of object that a replica consists of."""
