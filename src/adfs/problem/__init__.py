"""The finite sum: its oracles, condition numbers, duality gap and certified optimum."""
