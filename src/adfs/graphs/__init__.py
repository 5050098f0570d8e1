"""Communication graphs: nodes, edges, Laplacian spectra, distances."""
