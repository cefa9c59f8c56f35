"""Findings and deployments: reading, checking, searching and growing the knowledge base."""
