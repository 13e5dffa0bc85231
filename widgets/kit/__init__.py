"""The building blocks of every widget: controls, the base class, text, figures, and the compiler to
JavaScript."""
