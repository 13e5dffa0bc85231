"""The algorithms themselves, run on real arrays and queues, to check the closed forms against."""
