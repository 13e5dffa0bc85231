"""Links from running text: to other lessons, the glossary, and boxes, which get addresses of their own."""
