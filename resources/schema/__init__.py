"""Schema: the models of Grove's kinds, one file for each, with their CRDs, parsing and the rules for pod specs."""
