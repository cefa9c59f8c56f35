"""From an event table to launches: stages, ranks, facts, versions, failures and what came first."""
