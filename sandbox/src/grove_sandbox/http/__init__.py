"""HTTP: the API as kubectl and client libraries speak to it."""
