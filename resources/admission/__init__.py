"""Admission: the rules for manifests. Pure; the webhook, the preview and the sandbox use the same rules."""
