"""Pictures: each function takes arrays or a trace and returns matplotlib Axes."""
