"""From launches, signals and findings to ranked hypotheses, what is ruled out, fixes and next steps."""
