"""Precision and recall of the local extractor on labelled utterances.

    python bench/extraction.py               both splits by style, and errors of the dev split
    python bench/extraction.py --show test   errors of the test split; do not tune to them
    python bench/extraction.py --show none   figures only
    python bench/extraction.py --quick       without the update decisions made by Memory.add
    python bench/extraction.py --extractor told.extraction.rules:LocalExtractor

The labels are in tests/data, the scorer in tests/support/labels.py; the figures go to
bench/results/extraction.json.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import labels
from bench import _table
from told import Memory
from told.ingest.types import Extractor

LOCAL = "told.extraction.rules:LocalExtractor"
PRECISION, RECALL, DECISIONS = 0.90, 0.70, 0.85
REPORTED = (*labels.SPLITS, "hard", "everyday", "fresh")
"""Reported splits; `hard` and `everyday` are used for tuning like `dev`, `fresh` is not."""

HEAD = ("", "utterances", "wanted", "precision", "recall", "F1", "wrong", "forbidden")


def chosen(name: str) -> Extractor:
    """Load an extractor by its module and class."""
    module, _, attribute = name.partition(":")
    return cast(Extractor, getattr(importlib.import_module(module), attribute)())


def row(name: str, judged: Sequence[labels.Judged]) -> list[str]:
    """Format one line of the table."""
    score = labels.total(judged)
    shares = (f"{share:.3f}" for share in (score.precision, score.recall, score.f1))
    return [
        name,
        str(len(judged)),
        str(score.wanted),
        *shares,
        str(score.wrong),
        str(score.forbidden),
    ]


def rows(split: str, judged: Sequence[labels.Judged]) -> list[list[str]]:
    """Return the figures of a split by style."""
    styles = sorted({one.utterance.style for one in judged})
    by_style = [
        row(style, [one for one in judged if one.utterance.style == style]) for style in styles
    ]
    return [row(f"all of {split}", judged), *by_style]


def show(judged: Sequence[labels.Judged]) -> None:
    """Print every utterance with errors: missed and false claims."""
    for one in judged:
        if one.missed or one.wrong:
            print(f"\n{one.utterance.id}: {one.utterance.text[:160]}")
        for triple in one.missed:
            print(f"  missed  {triple}")
        for claim in one.wrong:
            said = f"{claim.subject} | {claim.predicate} | {claim.object}"
            print(
                f"  wrong   {claim.text}  "
                f"({said}{', negated' if claim.polarity == 'negated' else ''})"
            )


def figures(judged: Sequence[labels.Judged]) -> dict[str, Any]:
    """Return the figures of a split as JSON."""
    score = labels.total(judged)
    return {
        "utterances": len(judged),
        "wanted": score.wanted,
        "found": score.found,
        "wrong": score.wrong,
        "forbidden": score.forbidden,
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "dated": score.dated,
        "well_dated": score.well_dated,
        "styles": {
            style: {
                "precision": one.precision,
                "recall": one.recall,
                "wanted": one.wanted,
                "wrong": one.wrong,
            }
            for style, one in labels.by_style(judged).items()
        },
    }


def decisions(split: str, *, shown: bool) -> float:
    """Count the correct update decisions of a split; print the wrong ones if asked."""
    outcomes = labels.measure_updates(lambda: Memory("ram://", embedder="none"), split)
    for one in outcomes if shown else ():
        if one.faults:
            steps = " → ".join(str(step) for step in one.update.steps)
            print(
                f"\n{one.update.id}: {steps}\n  {'; '.join(one.faults)}\n  held: {list(one.held)}"
            )
    return labels.accuracy(outcomes)


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="Precision and recall of extraction on labelled utterances"
    )
    parser.add_argument("--extractor", default=LOCAL, help=f"module:class (default: {LOCAL})")
    parser.add_argument(
        "--show", choices=(*REPORTED, "none"), default="dev", help="list what went wrong"
    )
    parser.add_argument("--quick", action="store_true", help="leave out the update decisions")
    parser.add_argument(
        "--publish", action="store_true", help="put the tables into docs/reference/benchmarks.md"
    )
    return parser.parse_args()


def main() -> None:
    """Measure, print and save."""
    asked, facts = options(), _table.machine()
    extractor = chosen(asked.create_extractor)
    measured: dict[str, Any] = {}
    tables: list[str] = []
    for split in REPORTED:
        judged = labels.measure(split, extractor)
        if asked.show == split:
            show(judged)
        measured[split] = figures(judged)
        if not asked.quick and split in labels.SPLITS:
            measured[split]["decisions"] = decisions(split, shown=asked.show == split)
        print("", _table.plain(HEAD, rows(split, judged)), sep="\n")
        tables.append(_table.markdown(HEAD, rows(split, judged)))
    verdicts = judged_against(measured["test"])
    print("", _table.plain(_table.VERDICT_HEAD, _table.verdict_rows(verdicts)), sep="\n")
    results = {
        "machine": facts,
        "extractor": extractor.name,
        "splits": measured,
        "verdicts": verdicts,
    }
    print(f"\nkept in {_table.save('extraction', results).relative_to(_table.HERE.parent)}")
    if asked.publish:
        tables.append(_table.markdown(_table.VERDICT_HEAD, _table.verdict_rows(verdicts)))
        _table.publish(
            "extraction", "\n\n".join([f"`{facts['command']}` on {_table.where(facts)}.", *tables])
        )


def judged_against(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare the test split with its targets."""
    targets = {"precision": PRECISION, "recall": RECALL, "decisions": DECISIONS}
    return [
        _table.verdict(f"{name}, test split", found[name], ">=", target, "")
        for name, target in targets.items()
        if name in found
    ]


if __name__ == "__main__":
    main()
