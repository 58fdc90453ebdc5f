"""Adds up JUnit files and prints one line: how many tests passed, failed and were skipped."""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def count(path: pathlib.Path) -> tuple[int, int, int]:
    """Tests that passed, failed, were skipped."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main(paths: list[str]) -> int:
    totals = [0, 0, 0]
    for path in map(pathlib.Path, paths):
        counts = count(path)
        if sum(counts):
            print(f"{path.stem}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped")
        totals = [total + one for total, one in zip(totals, counts)]
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
