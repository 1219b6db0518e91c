"""The tests: a folder per band, and beside them the laws, the stories and the contract."""
