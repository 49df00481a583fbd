"""Clusters of rows without labels, under any kernel."""
