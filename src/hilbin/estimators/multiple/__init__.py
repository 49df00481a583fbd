"""Several kernels on the same rows, and what each of them counts."""
