"""grove-initc: the init container that waits until the cliques that its pod starts after are ready. Uses only the standard library."""
