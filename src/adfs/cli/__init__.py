"""The command line: `commands.py` says what there is, one file per command does the work."""
