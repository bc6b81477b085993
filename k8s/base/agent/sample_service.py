"""A measurement service for trying things out: writes a small measurement every few seconds.

Replace it by your own.  What matters to the agent: a hidden name first, then a rename in the same
directory; and a umask of 002, so that the agent, which is another user of the same group, may
delete what it has stored.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

SPOOL = Path(os.environ["SPOOL"])
INTERVAL_S = float(os.environ.get("INTERVAL_S", "5"))
COUNT = int(os.environ.get("COUNT", "0"))  # 0: until told to stop


def measure() -> dict[str, object]:
    """Make up a measurement of the datatype speed1."""
    rate = random.uniform(10, 90)  # Mbit/s
    samples = [
        {"ElapsedTime": at, "Bytes": round(rate * at / 8), "RTT": 30_000, "Retransmits": 0}
        for at in range(250_000, 2_000_000, 250_000)
    ]
    return {
        "UUID": str(uuid.uuid4()),
        "StartTime": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "Direction": "download",
        "Client": {"Country": "DE", "ASN": 3320, "Name": "sample"},
        "Rate": rate,
        "Congested": False,
        "Samples": samples,
    }


def write(document: dict[str, object]) -> None:
    """Write it where the agent looks: SPOOL/yyyy/mm/dd/NAME.json, complete or not at all."""
    day = SPOOL / datetime.now(UTC).strftime("%Y/%m/%d")
    day.mkdir(parents=True, exist_ok=True)
    name = f"{time.time_ns()}-{document['UUID']}.json"
    hidden = day / f".{name}"
    hidden.write_text(json.dumps(document) + "\n", encoding="utf-8")
    hidden.rename(day / name)


def main() -> None:
    """Write until SIGTERM."""
    os.umask(0o002)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    written = 0
    while not stop.wait(INTERVAL_S if written else 0):
        write(measure())
        written += 1
        if written == COUNT:
            break
    print(f"wrote {written} measurements", file=sys.stderr)


if __name__ == "__main__":
    main()
