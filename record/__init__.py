"""The behaviour of a real PyTorch, recorded: each module here makes one file of engine/one_gpu/recordings.
Run by `make record`."""
