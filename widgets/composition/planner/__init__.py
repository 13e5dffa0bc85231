"""What the figure ``layout_planner`` is made of: each part of its picture, and its words."""
