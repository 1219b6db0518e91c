"""Install: what an installation needs: permissions and preflight checks."""
