"""Apply: JSON and strategic merge patches, server-side apply, and field managers."""
