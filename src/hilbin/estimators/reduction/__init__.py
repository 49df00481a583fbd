"""Few coordinates instead of many: principal components, discriminants, correlated directions."""
