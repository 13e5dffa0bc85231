"""One training step: its layout, its time and memory, the search over all layouts, and conversion from and to
other formats."""
