"""Resources: what a workload means. Pure: the schemas, the rules, and one file per child kind."""
