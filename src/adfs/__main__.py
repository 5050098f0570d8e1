"""``python -m adfs`` is the same as ``adfs``."""

import sys

from adfs.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
