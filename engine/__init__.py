"""The pure core: every pass computes what should exist now from what a user asked for and what exists; the difference is the plan.

The nouns, in reading order:

- `ids`: `Kind`, `ResourceId`, `Owner`: the kind of an object, its identity, its owner.
- `resource`: `Resource`: the desired state of one object (`Want`, `Scaled`, `Hold` or `Drop`), with its `Policy`.
- `graph`: `Part`, `Graph`: all resources of a root, unique and in order.
- `observed`: `Live`, `Slice`, `Observed`, `World`: the objects that exist.
- `blueprint`: `Blueprint`: what one kind of root means; it returns `Desired`.
- `diff`, `planner`: the graph minus the observed objects: `Operation`s with reasons and preconditions, collected in a `Plan`.
- `guard`: objections against a finished plan.
- `tick`: all of the above as one function of its arguments. Preview, one-shot and loop call nothing else.

Nothing here awaits, reads a clock, draws a random number or writes a log; `engine.runtime` does.
"""
