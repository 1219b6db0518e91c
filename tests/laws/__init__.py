"""Laws: what holds whatever happens, proved on a toy cluster."""
