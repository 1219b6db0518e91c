"""Backends: how the main container of a multinode service is changed so that its framework runs on all nodes. One file each."""
