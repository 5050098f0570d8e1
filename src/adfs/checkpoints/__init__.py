"""Checkpoints: files that say what they hold, prove that they are whole, and can be resumed."""
