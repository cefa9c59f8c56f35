"""What a hostile log may not do to a fix: open a file, run a module, bring a secret back, open the server, or end the
analysis."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import READY, diagnose, focus, launch_text, write

from forensics.knowledge.store import load
from forensics.rulebook.captures import typed
from forensics.schema.report import LaunchInfo

HEAD = "[2026-05-01 10:00:00] INFO: using sglang 0.5.17\n"
REFUSED = "usage: launch_server.py [-h]\nlaunch_server.py: error: {}\n"
RAISED = """[2026-05-01 10:00:01] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/server_args.py", line 53, in check
    raise
{}
"""
COMMAND = "$ python -m sglang.launch_server --model-path /m/x --port 30000\n"
SECRET = "hf_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" + "bC0eF3h"


def of(tmp_path: Path, text: str, command: str = COMMAND) -> LaunchInfo:
    return focus(diagnose([write(tmp_path, "1.log", command + HEAD + text)], load()))


def said(launch: LaunchInfo) -> str:
    """All that a report tells a person to do."""
    steps = [f"{s.op} {s.name} {s.value} {s.do} {s.note}" for h in launch.hypotheses for s in h.fix]
    return "\n".join([*steps, *(f"{n.do} {n.command} {n.settles}" for n in launch.next)])


@pytest.mark.parametrize(
    ("message", "never"),
    [
        (RAISED.format("ValueError: SSL key file not found: '/x>/root/.ssh/authorized_keys'"), "authorized_keys"),
        (RAISED.format("ValueError: SSL key file not found: '--help'"), "--help)"),
        (RAISED.format("PermissionError: [Errno 13] Permission denied: '/m>/root/a.safetensors'"), "/root"),
        (RAISED.format("ModuleNotFoundError: No module named '-rother.txt'"), "-rother"),
        (RAISED.format("ValueError: --x=a is reserved for b. Use --custom-sigquit-handler=os"), "sigquit"),
        (RAISED.format("ValueError: --x=a is reserved for b. Use --trust-remote-code=True"), "trust-remote"),
        (
            REFUSED.format("argument --model-path: invalid choice: 'evilrep' (choose from 'evilrepo', 'a')"),
            "evilrepo",
        ),
        (
            REFUSED.format(
                "argument --tool-call-parser: invalid choice: '--log-request' (choose from '--log-requests')"
            ),
            "--log-requests",
        ),
        (REFUSED.format("unrecognized arguments: --m\u043edel-path x"), "remove --m "),
        (REFUSED.format("unrecognized arguments: --api-key abc"), "without --api-key"),
        (REFUSED.format(f"unrecognized arguments: --{SECRET}"), SECRET),
        (REFUSED.format(f"unrecognized arguments: --kt-amx-weight-path {SECRET}"), SECRET),
        (RAISED.format(f"ValueError: SSL key file not found: '/k/{SECRET}.pem'"), SECRET),
    ],
)
def test_a_message_never_gets_this_into_a_step(message: str, never: str, tmp_path: Path) -> None:
    launch = of(tmp_path, message)
    assert launch.hypotheses
    assert never not in said(launch)


def test_a_command_to_copy_hides_what_the_log_must_not_show(tmp_path: Path) -> None:
    command = COMMAND.rstrip().replace("/m/x", "https://u:blue7horse@h/x") + " --api-key green8door\n"
    launch = of(tmp_path, REFUSED.format("unrecognized arguments: --stream-output"), command)
    assert launch.next[0].command.startswith("python -m sglang.launch_server")
    assert "[masked]" in launch.next[0].command
    assert "blue7horse" not in said(launch)
    assert "green8door" not in said(launch)


def test_a_place_inside_one_record_of_many_lines_shows_its_own_line(tmp_path: Path) -> None:
    lines = (HEAD + REFUSED.format("unrecognized arguments: --no-such-flag")).replace("\n", "\\n")
    record = f'{{"log":"{lines}","stream":"stderr","time":"2026-05-01T10:00:00.1Z"}}\n'
    launch = focus(diagnose([write(tmp_path, "1.log", record)], load()))
    places = [w for g in launch.hypotheses[0].grounds for w in g.where]
    assert any((w.text or "").startswith("launch_server.py: error: unrec") and w.column > len(HEAD) for w in places)


def test_a_renamed_value_of_a_listed_flag_is_still_offered(tmp_path: Path) -> None:
    launch = of(
        tmp_path, RAISED.format("ValueError: --attention-backend=nsa is deprecated. Use --attention-backend=dsa")
    )
    assert launch.next[0].command.endswith("--attention-backend dsa")


@pytest.mark.parametrize("kind", ["int", "float", "size", "duration"])
def test_a_number_that_no_double_holds_is_no_number(kind: str) -> None:
    assert typed("9" * 5000, kind) is None
    assert typed("1e999 s", kind) is None


def test_a_clock_of_too_many_digits_is_no_duration() -> None:
    assert typed("9" * 5000 + ":00:01", "duration") is None


def test_a_huge_number_in_a_message_ends_nothing(tmp_path: Path) -> None:
    text = "ValueError: User-specified context_length (9) is greater than the derived context_length ({})"
    assert of(tmp_path, RAISED.format(text.format("9" * 5000))).hypotheses


@pytest.mark.parametrize("line", ["  FutureWarning: this was renamed", "torch.FutureWarning: this was renamed"])
def test_a_warning_by_itself_is_no_failure(line: str, tmp_path: Path) -> None:
    launch = focus(diagnose([write(tmp_path, "1.log", f"{launch_text(READY)}{line}\n{READY}")], load()))
    assert launch.first_failure is None
    assert not launch.hypotheses
