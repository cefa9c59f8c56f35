"""Whether the wordings of rules stand where their sources say: patterns taken apart, and the messages of source files."""
