"""The widgets of lesson 10, the planner and the examination."""
