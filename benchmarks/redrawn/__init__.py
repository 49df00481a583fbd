"""The tables and figures of the five papers, redrawn: one module per paper."""
