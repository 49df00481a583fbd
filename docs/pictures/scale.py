"""Measured over predicted seconds of whole jobs, from the results of the benchmark."""

import json
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()
results = next(
    folder / "benchmarks" / "results" / "scale.json"
    for folder in HERE.resolve().parents
    if (folder / "benchmarks" / "results").exists()
)
jobs = json.loads(results.read_text(encoding="utf-8"))["figures"]["Whole jobs"]
predicted = [job["predicted, s"] for job in jobs.values()]
measured = [job["measured, s"] for job in jobs.values()]
figure, axes = plt.subplots(figsize=(4.6, 3.4))
ends = [min(predicted) / 1.5, max(predicted) * 1.5]
axes.loglog(ends, ends, color="gray", lw=1)
axes.loglog(predicted, measured, "o")
axes.set(xlabel="predicted, seconds", ylabel="measured, seconds")
