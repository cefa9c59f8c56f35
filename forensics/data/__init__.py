"""Package data: what each sglang release knows (flags, environment, messages, release list), lines of healthy logs, and
what is worked out from the shipped rules (words that they need, wordings that stand in the program)."""
