"""Fleets over plain HTTP: single files, listings and globs of a web server, with and without byte ranges."""

from __future__ import annotations

import http.server
import re
import sqlite3
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import pytest
from fleet_logs import Here, log
from test_fleet_ranges import Elsewhere

from forensics.errors import InputError
from forensics.fleet.job import run_job
from forensics.fleet.objects import list_objects
from forensics.fleet.plan import Job, Settings
from forensics.fleet.remote import Limits
from forensics.fleet.run import plan, run

pytest.importorskip("aiohttp")
pytest.importorskip("fsspec")
MIB = 1 << 20


class Web(http.server.SimpleHTTPRequestHandler):
    """The files of a folder, listings included. Names with `denied` are forbidden, with `slow` slow."""

    ranges = True
    slow = 0.0
    served: ClassVar[list[tuple[str, int]]] = []

    def do_GET(self):
        if "denied" in self.path:
            self.send_error(403)
            return
        if "slow" in self.path:
            time.sleep(self.slow)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        path = Path(self.directory) / unquote(self.path).lstrip("/")
        if asked is None or not self.ranges or not path.is_file():
            self.served.append((self.path, -1))
            super().do_GET()
            return
        data = path.read_bytes()
        start, stop = int(asked[1]), min(int(asked[2] or len(data)) + 1, len(data))
        self.served.append((self.path, stop - start))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.send_header("Content-Length", str(stop - start))
        self.end_headers()
        self.wfile.write(data[start:stop])

    def log_message(self, *_):
        return


@contextmanager
def web(folder: Path, **how):
    """The address of a server over a folder, and its handler."""
    handler = type("Handler", (Web,), {**how, "served": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *rest: handler(*rest, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def folder(tmp_path):
    for name, failure in (("day/a.log", "oom"), ("day/deep/b.log", "none"), ("day/notes.bin", "none")):
        path = tmp_path / "www" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log(len(name), failure), encoding="utf-8")
    return tmp_path / "www"


def test_a_file_a_listing_and_a_glob(folder):
    with web(folder) as (url, _):
        names = {
            words: [o.name.removeprefix(url) for o in list_objects([f"{url}{words}"]).objects]
            for words in ("/day/a.log", "/day/", "/day/*.log")
        }
        assert names == {
            "/day/a.log": ["/day/a.log"],
            "/day/": ["/day/a.log", "/day/deep/b.log"],
            "/day/*.log": ["/day/a.log"],
        }
        for item in list_objects([f"{url}/day/"]).objects:
            assert item.size == (folder / item.name.removeprefix(f"{url}/")).stat().st_size
            assert item.stamp.startswith("Last-Modified ")
        with pytest.raises(InputError, match="no such object"):
            list_objects([f"{url}/day/never.log"])


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no-ranges"])
def test_logs_of_a_web_server_are_read_as_local_ones_are(folder, tmp_path, ranges):
    with web(folder, ranges=ranges) as (url, _):
        result = run(plan([f"{url}/day/"], Settings()), tmp_path / "web", Here(), parquet=False, quiet=True)
    assert (result.incidents, result.failed, result.bad) == (2, 1, 0)
    run(plan([str(folder / "day")], Settings()), tmp_path / "local", Here(), parquet=False, quiet=True)
    query = "select cause, verdict, failure, line, files, lines, bytes, time from incidents order by time"
    rows = [sqlite3.connect(tmp_path / n / "summary.sqlite").execute(query).fetchall() for n in ("web", "local")]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no-ranges"])
def test_large_logs_are_read_by_ranges_where_the_server_has_them(folder, ranges):
    path = folder / "day/large.log"
    path.write_text(log(3, "oom", steps=20_000), encoding="utf-8")
    size = path.stat().st_size
    with web(folder, ranges=ranges) as (url, handler):
        chosen = Settings(split_above=4 * size)
        [incident] = plan([f"{url}/day/large.log"], chosen).incidents
        job, elsewhere = Job(incident, chosen, 2), Elsewhere()
        handler.served.clear()
        spread = run_job(job, elsewhere).data
        longest = max(count for _, count in handler.served)
        assert spread == run_job(replace(job, processes=1)).data
    assert len(elsewhere.pieces) == 4
    assert 0 < longest <= 2 * MIB < size if ranges else longest == -1


def test_denied_vanished_and_slow_files_are_problems_and_the_rest_goes_on(folder, tmp_path):
    for name in ("denied.log", "slow.log", "gone.log"):
        (folder / "day" / name).write_text(log(7, "none"), encoding="utf-8")
    with web(folder) as (url, handler):
        chosen = Settings(limits=Limits(stall=2.0))
        planned = plan([f"{url}/day/"], chosen)
        (folder / "day/gone.log").unlink()
        handler.slow = 5.0
        result = run(planned, tmp_path / "out", Here(), parquet=False, quiet=True)
        handler.slow = 0.0
        again = run(planned, tmp_path / "out", Here(), parquet=False, quiet=True)
    assert (result.incidents, result.bad) == (5, 3) and (again.analyzed, again.bad) == (3, 2)
    rows = sqlite3.connect(tmp_path / "out" / "summary.sqlite").execute("select path, code from problems").fetchall()
    assert {(p.rpartition("/")[2], c) for p, c in rows} == {
        ("denied.log", "object-denied"),
        ("gone.log", "object-missing"),
    }
