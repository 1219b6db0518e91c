"""Certificates: those of the webhook server: made by us and kept in a Secret, or given as files."""
