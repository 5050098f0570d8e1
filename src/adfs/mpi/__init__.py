"""The network of MPI ranks: communicator, transport, launcher, and failures of ranks."""
