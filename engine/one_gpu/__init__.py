"""The software of a single GPU: dispatch, the allocator, tiles, compilation and graphs, with recordings and
measurements of real runs."""
