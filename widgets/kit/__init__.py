"""What every widget is made of: controls, the base class, text, figures, and the compiler to JavaScript."""
