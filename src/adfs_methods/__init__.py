"""More methods for `adfs`, written against its public names only, one file each.

Installed with `adfs` and found through the entry point ``adfs.algorithms``, as anybody's package
is. They run where they are named: ``adfs train --algorithm extra``.
"""

from adfs_methods import extra

__all__ = ["extra"]
