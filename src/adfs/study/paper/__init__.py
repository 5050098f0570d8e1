"""The paper's results by one command: what it claims, what was measured, whether that holds."""
