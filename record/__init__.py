"""What a real PyTorch did, written down: each module here records one file of engine/recordings. Run by `make record`."""
