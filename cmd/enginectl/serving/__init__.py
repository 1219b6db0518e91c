"""Serving: the endpoints of `engine run`: what each address answers, from the state of the loop."""
