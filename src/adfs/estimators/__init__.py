"""Scikit-learn's interface to models that nodes of a graph fit by exchanging messages."""
