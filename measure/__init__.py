"""What has to be timed on a GPU: each module measures one subject of engine/one_gpu/measurements. Run by
`make measure`."""
