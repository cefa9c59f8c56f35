"""Following a live server: new lines in, early warnings and the final report out."""
