"""Versions: DynamoGraphDeployments of v1beta1 as such of v1alpha1, which all other code reads, and the reverse."""
