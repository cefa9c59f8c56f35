"""The history file under several writers, kills and foreign files."""

import multiprocessing
import os
import signal
import sqlite3
import time

import pytest

from forensics import history as module
from forensics.errors import HistoryError
from forensics.history import APPLICATION_ID, MIGRATIONS, Attempt, History, Verdict


def _verdict(n: int) -> Verdict:
    return Verdict(run=f"run-{n}", finding="fp16-overflow", outcome="fixed", changes=("--dtype=bfloat16",), at=1.0)


def _write_many(path, start, count):
    history = History(path)
    for n in range(start, start + count):
        history.add_verdict(_verdict(n))


def test_a_verdict_comes_back_as_it_went_in(tmp_path):
    history = History(tmp_path / "h.db")
    history.add_verdict(_verdict(1))
    history.add_verdict(_verdict(1))
    assert history.verdicts() == (_verdict(1),)
    assert history.verdicts("other") == ()


def _open_many(path, count):
    for n in range(count):
        history = History(path)
        history.add_attempt(Attempt(f"run-{n}", "fixed", "python -m sglang.launch_server", "answered"))
        history.close()


def test_launches_come_back_newest_first_and_their_secrets_are_masked(tmp_path):
    history = History(tmp_path / "h.db")
    history.add_attempt(
        Attempt("run-1", "control", "sglang serve --api-key sk-0123456789abcdef", "died", "exit code -9", "decode")
    )
    history.add_attempt(Attempt("run-1", "fixed", "sglang serve --dtype bfloat16", "answered"))
    assert [a.step for a in history.attempts()] == ["fixed", "control"]
    assert [a.step for a in history.attempts("bfloat16")] == ["fixed"]
    assert b"0123456789abcdef" not in (tmp_path / "h.db").read_bytes() + (tmp_path / "h.db-wal").read_bytes()


def old_file(path, monkeypatch):
    """A history as the first release of the format left it."""
    with monkeypatch.context() as patched:
        patched.setattr(module, "MIGRATIONS", MIGRATIONS[:1])
        history = History(path)
        history.add_verdict(_verdict(1))
        history.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 1


def test_an_old_file_is_migrated_and_keeps_what_it_holds(tmp_path, monkeypatch):
    old_file(tmp_path / "h.db", monkeypatch)
    history = History(tmp_path / "h.db", create=False)
    assert history.verdicts() == (_verdict(1),) and history.attempts() == ()
    assert history.connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)


def test_processes_that_migrate_one_file_at_once_and_are_killed_leave_it_whole(tmp_path, monkeypatch):
    path = tmp_path / "h.db"
    old_file(path, monkeypatch)
    workers = [multiprocessing.Process(target=_open_many, args=(path, 20)) for _ in range(4)]
    for worker in workers:
        worker.start()
    workers[0].kill()
    for worker in workers:
        worker.join()
    history = History(path)
    assert history.verdicts() == (_verdict(1),) and len(history.attempts()) == 20
    assert history.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_four_writers_lose_nothing(tmp_path):
    path = tmp_path / "h.db"
    workers = [multiprocessing.Process(target=_write_many, args=(path, 100 * n, 25)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(History(path).verdicts()) == 100


def test_a_killed_writer_leaves_a_whole_database(tmp_path):
    path = tmp_path / "h.db"
    for round_ in range(8):
        worker = multiprocessing.Process(target=_write_many, args=(path, 1000 * round_, 5000))
        worker.start()
        time.sleep(0.02 + 0.03 * round_)
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        history = History(path)
        assert history.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert history.connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        history.close()


def test_a_foreign_or_broken_file_is_refused_and_left_alone(tmp_path):
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(HistoryError, match="another program"):
        History(foreign)
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, and it is long enough to be read as one" * 40)
    before = broken.read_bytes()
    with pytest.raises(HistoryError):
        History(broken)
    assert broken.read_bytes() == before


def test_a_newer_file_is_refused(tmp_path):
    path = tmp_path / "h.db"
    History(path).connection.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    with pytest.raises(HistoryError, match="newer"):
        History(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID


def test_a_missing_history_is_an_error_with_a_hint(tmp_path):
    with pytest.raises(HistoryError) as caught:
        History(tmp_path / "none.db", create=False)
    assert "--db" in caught.value.render()
