"""Fabrics: what is said in the vendors' domains. Pure; a new vendor is one file here, or a plug-in of its own."""
