"""Markdown: a report as a comment on a change: bounded, the worst first, with details that fold."""
