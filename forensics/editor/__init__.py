"""The language server: findings, rules and logs in editors."""
