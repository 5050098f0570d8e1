"""Comparisons of algorithms, pictures, HTML reports and the paper's results."""
