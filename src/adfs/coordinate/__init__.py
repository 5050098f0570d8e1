"""Generalized APCG for anyone's problem: a smooth function plus a separable one."""
