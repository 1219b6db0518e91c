"""The command line. Imports point one way: commands, actions, then input and output, then wiring, then base."""
