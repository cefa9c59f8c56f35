"""Whether what a rule knows of one release it also knows of the others: the checks of each release, set side by side."""
