"""Admission: what a manifest must be before anything is made of it. Pure rules, with three callers: webhook, preview, sandbox."""
