"""The commands of `engine` that the sandbox adds, as entry points of the group `engine.commands`."""
