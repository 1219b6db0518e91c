"""grove-initc: the init container in which a pod waits until the cliques that it starts after are ready. Needs nothing but Python."""
