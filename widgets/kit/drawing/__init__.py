"""The building blocks of figures: colours, scales, rings, lanes, matrices, clusters."""
