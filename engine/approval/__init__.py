"""Approval: what was approved of a plan and its forecast, and whether later passes stay within it. Pure."""
