"""The commands: one file for each, with its arguments, options and help text."""
