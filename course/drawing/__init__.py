"""The building blocks of static pictures: text sizes, the looks of marks, a picture and its primitives."""
