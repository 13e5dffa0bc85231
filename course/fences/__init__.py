"""The fences that a lesson may use, one module each."""
