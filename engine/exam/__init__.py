"""The training jobs that a reader lays out and is judged on: the missions, and the closing examination."""
