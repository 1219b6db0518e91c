"""Dynamo: what a DynamoGraphDeployment means: its services, their pods, and the objects that run them on either orchestrator."""
