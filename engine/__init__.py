"""The mathematics of desired state: every pass computes, from what a user intended for and what is there, what should be there now.

The nouns, in reading order:

- `ids`: `Kind`, `ResourceId`, `Owner`: what sort of object, and which one.
- `resource`: `Resource`: what we want of one object, with its `Stance` (WANT, HOLD, DROP) and `Policy`.
- `graph`: `Part`, `Graph`: everything a root should have, unique and in order.
- `observed`: `Live`, `Slice`, `Observed`, `World`: what is there.
- `blueprint`: `Blueprint`: what one kind of root means; it answers with `Desired`.
- `diff`, `plan`: the graph minus what is observed: `Operation`s with reasons and preconditions.
- `guard`: what speaks against a finished plan.
- `tick`: all of the above in one function of its arguments. Preview, one-shot and loop call nothing else.

Nothing here awaits, reads a clock, draws a number or writes a log; `engine.runtime` is the shell that does.
"""
