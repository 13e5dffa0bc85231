"""What every other room builds on: units, checks, array operations, and the two forms in which an algorithm
can be translated for a page."""
