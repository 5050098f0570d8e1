"""Communication graphs: who may talk to whom, and what the Laplacian says about it."""
