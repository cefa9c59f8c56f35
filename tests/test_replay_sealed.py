"""A run folder goes on by itself and shows no secret: while it may be needed, and after its verdict."""

import gzip
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from replay_kit import FORENSICS, QUICK, command, journal, replay, starts, verdict

from forensics.replay.folder import RunFolder
from forensics.replay.sealed import NAME, masked_copy, masked_tree

KEY = "hunter2zebra9"
PROMPT = "tell nobody about the merger"


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def leaks(folder: Path, *secrets: str) -> list[str]:
    return [name for name, data in files(folder).items() for secret in secrets if secret.encode() in data]


def test_a_finished_run_leaves_no_secret_in_its_folder(tmp_path):
    config = tmp_path / "server.yaml"
    config.write_text(f"dtype: float16\napi-key: {KEY}\n")
    requests = tmp_path / "requests.jsonl"
    requests.write_text(json.dumps({"prompt": PROMPT, "max_tokens": 8}) + "\n")
    launch = command(tmp_path, "--config", str(config), "--admin-api-key", KEY, env=f"HF_TOKEN={KEY}")
    given = ("--launch", launch, "--fix", "--dtype=bfloat16", "--requests-file", str(requests), "--yes")
    done = replay(tmp_path, *given)
    assert verdict(done) == "passes", done.stdout + done.stderr
    assert KEY not in done.stdout and PROMPT not in done.stdout
    assert any(KEY in words for words in starts(tmp_path)), "the server got the key"
    (run,) = (tmp_path / "runs").iterdir()
    assert leaks(tmp_path / "runs", KEY, PROMPT) == []
    assert not (run / "agent").exists(), "the server's raw log and its config file are gone"
    assert "api-key: [masked]" in (run / "fixed.config.yaml").read_text()
    assert "--admin-api-key [masked]" in journal(tmp_path)["steps"]["fixed"]["command"]
    again = replay(tmp_path, "--resume", str(run), "--yes")
    assert again.returncode == 2 and "was let go when the replay had its verdict" in again.stderr


def test_an_interrupted_run_goes_on_with_its_secrets_by_its_folder_alone(tmp_path):
    launch = command(tmp_path, "--dtype float16", "--admin-api-key", KEY, env="FAKE_SHARD_S=20")
    words = [*FORENSICS, "replay", "--launch", launch, "--fix", "--dtype=bfloat16", "--yes", "--runs", "runs"]
    process = subprocess.Popen([*words, "--db", "history.db", *QUICK], cwd=tmp_path, stdout=subprocess.DEVNULL)
    for _ in range(300):
        if starts(tmp_path):
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    (run,) = (tmp_path / "runs").iterdir()
    assert set(leaks(run, KEY)) <= {NAME, "agent/fixed.log"} and (run / NAME).stat().st_mode & 0o077 == 0
    assert KEY in (run / NAME).read_text()
    resumed = RunFolder.open(run).kept("request.json")
    assert resumed["launch"] == launch
    done = subprocess.run(
        [*FORENSICS, "replay", "--cleanup", "--runs", "runs"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (run / "agent").exists()


def test_a_journal_gives_back_what_it_was_given_and_shows_none_of_it(tmp_path):
    folder = RunFolder.create(tmp_path)
    argv = ["env", f"API_KEY={KEY}", "python", "--api-key", KEY, "--port", "30000"]
    told = {"steps": {"fixed": {"command": f"python --api-key {KEY} --port 30000", "argv": argv, "seconds": 3.5}}}
    folder.write(told)
    folder.update(state="idle")
    assert folder.read() == {**told, "state": "idle"}
    shown = json.loads((folder.path / "run.json").read_text())
    assert shown["steps"]["fixed"]["argv"] == ["env", "API_KEY=[masked]", "python", "--api-key", "[masked]", *argv[-2:]]
    folder.finished()
    assert folder.read() == shown and leaks(folder.path, KEY) == []


def test_what_was_kept_for_another_text_is_not_put_in(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write({"step": f"--api-key {KEY}"})
    (folder.path / "run.json").write_text('{"step": "--api-key [masked] --tp 2"}')
    assert folder.read() == {"step": "--api-key [masked] --tp 2"}


def test_a_private_file_that_is_damaged_is_as_good_as_none(tmp_path):
    folder = RunFolder.create(tmp_path)
    folder.write({"step": f"--api-key {KEY}"})
    (folder.path / NAME).write_text("{")
    assert folder.read() == {"step": "--api-key [masked]"}


@pytest.mark.parametrize("tree", [{"input_ids": [1, 2, 3]}, {"text": PROMPT}, {"messages": [{"content": PROMPT}]}])
def test_requests_are_kept_without_what_users_wrote(tree):
    shown = json.dumps(masked_tree({"recorded": [{"path": "/generate", "body": tree}]}))
    assert PROMPT not in shown and "1, 2" not in shown and "/generate" in shown


def test_a_given_log_is_copied_masked_also_out_of_a_compressed_one(tmp_path):
    text = f"[2026-03-01 10:00:00 TP0] api_key='{KEY}'\n50%|#\r100%|##\nlast line"
    (tmp_path / "a.log").write_text(text, newline="")
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a.log", "b.log.gz"):
        masked_copy(tmp_path / name, tmp_path / "copy")
        assert (tmp_path / "copy").read_bytes() == text.replace(KEY, "[masked]").encode()
