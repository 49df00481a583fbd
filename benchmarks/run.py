"""Run every benchmark, each in a process of its own, then write the page of results."""

import json
import subprocess
import sys
from pathlib import Path

import harness
import render

SCRIPTS = (
    *("gram", "gcs", "maps", "maps_random", "maps_speed"),
    *("icd_accuracy", "icd_speed", "icd_scaling"),
    *("kernel_machines", "gcs_band", "gcs_photos", "outliers", "probabilities"),
    *("images", "images_speed", "images_tables", "stream", "stream_accuracy", "scale"),
    *("linear_speed", "pq", "pq_accuracy", "codes_whole"),
    *("mkl", "reduction", "clustering", "dependence", "unlabeled"),
    *("structure", "detect", "defaults", "files", "fuzz", "faults", "install"),
)


def main() -> int:
    """Run, render, and name the claims that do not hold; 1 if a benchmark broke."""
    parser = harness.parser(__doc__)
    parser.add_argument("--render-only", action="store_true", help="measure nothing")
    args = parser.parse_args()
    broken = []
    if not args.render_only:
        options = ["--quick"] * args.quick + (["--data", str(args.data)] if args.data else [])
        for name in SCRIPTS:
            print(f"--- {name}", flush=True)
            script = Path(__file__).with_name(f"{name}.py")
            if subprocess.run([sys.executable, str(script), *options]).returncode:
                broken.append(name)
    if not args.quick:
        render.main()
        for path in sorted(harness.RESULTS.glob("*.json")):
            for c in json.loads(path.read_text(encoding="utf-8"))["claims"]:
                if not c["holds"]:
                    print(f"does not hold: {path.stem}: {c['what']}")
    if broken:
        print(f"broken: {', '.join(broken)}")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
