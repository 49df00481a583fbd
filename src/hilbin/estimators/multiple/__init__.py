"""Learning the kernel: weights of several kernels, and their parameters."""
