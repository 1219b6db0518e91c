"""Model: a graph as its user specified it, the names of its objects, and the frameworks of its services."""
