"""Fabrics: plug-ins for the fabrics of vendors. Pure; a new vendor is a module here, or a package with an entry point."""
