"""More methods for `adfs`, written against its public names only, one file each.

Installed with `adfs` and found through the entry point ``adfs.algorithms``, as anybody's package
is; importing it registers them all. They run where they are named, as in ``adfs train --algorithm
extra``.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
