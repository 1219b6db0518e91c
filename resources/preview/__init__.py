"""Previews: what is known beyond a plan, and the one function that makes of plan, forecast and facts what is shown."""
