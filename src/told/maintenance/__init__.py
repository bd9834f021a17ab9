"""Maintenance in the background or on request: tiers, topics, forgetting, reconsolidation."""
