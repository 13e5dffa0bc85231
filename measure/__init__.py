"""What must be timed on a GPU: each module measures one subject of engine/measurements. Run by `make measure`."""
