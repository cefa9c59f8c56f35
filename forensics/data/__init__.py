"""Package data: what each sglang release knows (flags, environment, messages, release list)."""
