"""Beside the graph, imported as a package does."""

PRICES = {"tea": 3, "cake": 5}
