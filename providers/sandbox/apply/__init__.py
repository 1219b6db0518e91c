"""Apply: JSON, merge and strategic patches, server-side apply, and who owns which field."""
