"""The parts of the engine that only the course uses: missions, the examination, and the validation against
published runs."""
