"""Structured outputs: labels of classes, chains and grids, and models of a user, by one SVM."""
