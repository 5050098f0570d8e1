# adfs with MPI and tables, its kernels compiled: docs/how-to/several-hosts.md says how to use it.
FROM python:3.12-slim
# mpiexec starts the ranks of other hosts, or of other pods, by ssh.
RUN apt-get update && apt-get install -y --no-install-recommends openssh-client openssh-server && mkdir -p /run/sshd
ENV NUMBA_CACHE_DIR=/opt/adfs-kernels
COPY pyproject.toml README.md LICENSE /opt/adfs/
COPY src /opt/adfs/src
RUN python -m pip install --no-cache-dir '/opt/adfs[mpi,tables]' && rm -rf /opt/adfs/build
RUN adfs info --compile
WORKDIR /work
CMD ["adfs", "--help"]
