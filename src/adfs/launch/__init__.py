"""Ranks as processes: their launcher, a supervisor each, the world they meet in, one voice."""
