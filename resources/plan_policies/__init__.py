"""Plan policies: the data about a plan that rules of users see, and what the rules say about it."""
