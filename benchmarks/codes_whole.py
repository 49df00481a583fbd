"""Product-quantized codes from end to end: memory, accuracy and time with nothing left out."""

import tempfile
from pathlib import Path
from typing import Any

import harness
from fisher import Split
from harness import claim, compare, seconds
from images import clothes
from pictures import pictures

from hilbin.estimators import MapSVC
from hilbin.images import FHOG, DenseSIFT, FisherVector
from hilbin.maps import PQCodes, ProductQuantizer

G, WORDS = 8, 256
COSTS = {"Fisher vectors of scene15": 10.0, "HOG of fashion_mnist": 0.1}
TOL = 1e-2
MANY = 50_000  # rows that the figures of a large set are of
TEXT = (
    "Fisher vectors of 1000 images of scene15 (64 Gaussians of 64 dimensions, 8192 numbers), "
    "tested on 500; HOG of 60,000 images of fashion_mnist, tested on 10,000. Parts of 8 "
    f"components, 256 words. MapSVC, hinge loss, to a gap of {TOL:g}, one thread, whole fits. "
    "Few rows, of float32 or codes, are trained by their kernel matrix, many float32 rows by dual "
    "descent, many codes by cutting planes. Quantizing is learning the words from the training "
    "rows and coding these. Memory of codes is given without and with the words, accuracy with "
    "test rows as they are and coded."
)


def fisher(folder: Path | None, quick: bool) -> Split | None:
    """Fisher vectors of some images of every class; None without the set."""
    with tempfile.TemporaryDirectory() as scratch:
        images = pictures(folder, "scene15", Path(scratch))
        if images is None:
            return None
        images = images.sample(6 if quick else 67)
        size = (8, 16) if quick else (64, 64)
        options: dict[str, Any] = {"n_samples": 60_000, "random_state": 0, "n_jobs": 2}
        made = FisherVector(DenseSIFT(6, (4, 6, 8)), size[0], n_dimensions=size[1], **options)
        made.fit(images.train)
        train, test = images.train[:1000], images.test[:: max(1, len(images.test) // 500)]
        y_test = images.y_test[:: max(1, len(images.test) // 500)]
        return Split(made.transform(train), images.y[:1000], made.transform(test), y_test)


def hog(folder: Path | None, quick: bool) -> Split | None:
    """HOG of clothes; None without the set."""
    data = clothes(folder, None)
    if data is None:
        return None
    n = 500 if quick else len(data.y)
    cells = FHOG(8, (56, 56), color=False, n_jobs=2)
    train, test = cells.fit_transform(data.train[:n]), cells.transform(data.test[:n])
    return Split(train, data.y[:n], test, data.y_test[:n])


def whole(split: Split, C: float, rounds: int) -> dict[str, Any]:
    """Everything about one set."""
    quantizer = ProductQuantizer(G, n_words=min(WORDS, len(split.y) // 2), random_state=0)
    kept: dict[str, PQCodes] = {}
    quantizing = seconds(lambda: kept.update(train=quantizer.fit(split.X).transform(split.X)))
    codes = kept["train"]
    plain, coded = (MapSVC(C=C, tol=TOL) for _ in range(2))
    calls = {
        "float32": lambda: plain.fit(split.X, split.y),
        "codes": lambda: coded.fit(codes, split.y),
    }
    times = compare(calls, rounds, patience=60)
    test = quantizer.transform(split.X_test)
    MB = 1e6
    return {
        "rows": len(split.y), "numbers per row": split.X.shape[1],
        "float32, MB": split.X.nbytes / MB, "codes, MB": codes.nbytes / MB,
        "words, MB": codes.words.nbytes / MB,
        "smaller": split.X.nbytes / codes.nbytes,
        "smaller, with the words": split.X.nbytes / (codes.nbytes + codes.words.nbytes),
        "float32, accuracy, %": 100 * plain.score(split.X_test, split.y_test),
        "codes, accuracy, %": 100 * coded.score(split.X_test, split.y_test),
        "codes, accuracy, test rows coded too, %": 100 * coded.score(test, split.y_test),
        "float32, s": times["float32"].best, "codes, s": times["codes"].best,
        "quantizing, s": quantizing,
        "faster": times["float32"].best / times["codes"].best,
        "faster, with quantizing": times["float32"].best / (times["codes"].best + quantizing),
        "float32, passes": plain.n_iter_, "codes, passes": coded.n_iter_,
    }  # fmt: skip


def claims_of(name: str, row: dict[str, Any]) -> list[Any]:
    """What a user gets."""
    lost = row["float32, accuracy, %"] - row["codes, accuracy, test rows coded too, %"]
    claims = [
        claim(f"{name}, accuracy lost with coded test rows", lost, 1, "<=", unit=" points",
              against="float32", headline=row["rows"] >= MANY),
        claim(f"{name}, a whole training from codes", row["faster"], 2.5,
              against="float32 rows with their fastest solver"),
        claim(f"{name}, quantizing and a whole training", row["faster, with quantizing"], 1,
              against="float32 rows with their fastest solver"),
    ]  # fmt: skip
    if row["rows"] >= MANY:
        smaller = row["smaller, with the words"]
        claims.append(claim(f"{name}, memory of codes and words", smaller, 20, against="float32",
                            headline=True))  # fmt: skip
    return claims


def main() -> None:
    """Measure, claim and record."""
    args = harness.parser(__doc__).parse_args()
    harness.keep_memory()
    table, claims = {}, []
    with harness.threads(1):
        for name, make in zip(COSTS, (fisher, hog), strict=True):
            split = make(args.data, args.quick)
            if split is not None:
                table[name] = whole(split, COSTS[name], 1 if args.quick else 3)
                print(name, table[name], flush=True)
                claims += claims_of(name, table[name])
    harness.record("codes_whole", {"end to end": table}, claims,
                   title="Product quantization from end to end", text=TEXT,
                   quick=args.quick)  # fmt: skip


if __name__ == "__main__":
    main()
