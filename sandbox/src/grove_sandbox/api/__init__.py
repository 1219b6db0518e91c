"""API: the store, the verbs, lists and watches, without any HTTP."""
