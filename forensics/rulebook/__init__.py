"""What to notice (rules) and what it takes to conclude (conditions): loading, matching, evaluating."""
