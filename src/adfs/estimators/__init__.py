"""Scikit-learn faces: the same models, fitted by nodes that exchange messages over a graph."""
