"""The built wheel, installed into an empty environment, works from any folder with its own rules and findings."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAGA = ROOT / "samples" / "cases" / "saga" / "session.log"


@pytest.mark.slow
def test_the_wheel_diagnoses_a_log_from_any_folder(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True, capture_output=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    log = elsewhere / "server.log"
    log.write_bytes(SAGA.read_bytes())
    command = [tmp_path / "env" / "bin" / "forensics", "analyze", "server.log", "--format", "json"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, env=env)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    focus = next(x for x in report["launches"] if x["id"] == report["focus"])
    assert focus["hypotheses"][0]["finding"] == "deepgemm-scale-format-mismatch"
    assert report["tool"]["findings"] > 150 and report["tool"]["rules"] > 200 and report["tool"]["deployments"] > 50
    code = "import forensics; r = forensics.analyze('server.log'); print(r.focus)"
    shown = subprocess.run([python, "-c", code], cwd=elsewhere, capture_output=True, text=True, env=env)
    assert shown.stdout.strip() == report["focus"], shown.stderr
