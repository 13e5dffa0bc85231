"""The widgets of lessons 13 to 19."""
