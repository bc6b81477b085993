"""Run the scripts of all clients against one embedded BigQuery; `make clients`.

The exit status is 1 if a step failed.  A client that is not installed (Go, Spark) is reported and
left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SERVER = Path(sys.prefix) / "server" / "bin" / "python"
SPARK = Path(sys.prefix) / "spark" / "bin" / "python"
SCRIPTS = ("with_pandas_gbq.py", "with_sqlalchemy.py", "with_ibis.py", "with_dbt.py")
LIMIT_S = 1800


def main() -> int:
    """Return 1 if a client's script failed."""
    with tempfile.TemporaryDirectory() as data:
        command = [str(SERVER), "-m", "embedded", "--data-dir", data, "--port", "0"]
        server = subprocess.Popen(
            [*command, "--storage-port", "0"], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            environ = {
                **os.environ,
                "BIGQUERY_EMULATOR_HOST": line.split("listens on ")[1].split(",")[0],
                "SERVER_PYTHON": str(SERVER),
                "STORAGE_GRPC": line.split("Storage Read API on ")[1].split(";")[0],
            }
            commands = [[sys.executable, "-W", "ignore", str(HERE / name)] for name in SCRIPTS]
            codes = [_code(command, HERE, environ) for command in commands]
            if shutil.which("go"):
                codes.append(_code(["go", "run", "."], HERE / "go", environ))
            else:
                print("Go client: left out, there is no go")
            if SPARK.exists():
                spark = [str(SPARK), "-W", "ignore", str(HERE / "with_spark.py")]
                codes.append(_code(spark, HERE, environ))
            else:
                print("Spark's BigQuery connector: left out, it is not installed")
        finally:
            server.terminate()
            server.wait()
    return int(any(codes))


def _code(command: list[str], directory: Path, environ: dict[str, str]) -> int:
    try:
        done = subprocess.run(command, cwd=directory, env=environ, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"{' '.join(command)}: FAILED not done in {LIMIT_S} s", flush=True)
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
