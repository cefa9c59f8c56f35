"""Real editors, where they are installed: quickfix of Vim and Neovim, Emacs' compile, Neovim as language client."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"
FINDING = ROOT / "kb/findings/deepgemm-scale-format-mismatch.md"
FORMAT = r"%f:%l:%c:\ %trror:\ %m,%f:%l:%c:\ %tarning:\ %m,%f:%l:%c:\ %tote:\ %m"


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("editors")
    shutil.copy(CRASH, folder / "server.log")
    command = [sys.executable, "-m", "forensics", "analyze", "server.log", "--format", "gcc", "-o", "report.gcc"]
    assert subprocess.run(command, cwd=folder).returncode == 1
    return folder


def edit(words, folder, home):
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "TERM": "dumb", "XDG_CONFIG_HOME": str(home)},
    )  # fmt: skip


@pytest.mark.parametrize(
    "editor",
    [
        pytest.param(["vim", "-Nu", "NONE", "-i", "NONE", "-es"], marks=needs("vim")),
        pytest.param(["nvim", "-u", "NONE", "-i", "NONE", "--headless"], marks=needs("nvim")),
    ],
    ids=["vim", "neovim"],
)
def test_quickfix_lists_and_jumps(editor, report, tmp_path):
    out = tmp_path / "list.json"
    entries = "map(getqflist(), {i, e -> [bufname(e.bufnr), e.lnum, e.col, e.type, e.valid]})"
    commands = [
        f"set errorformat={FORMAT}",
        "cgetfile report.gcc",
        f"let found = {entries}",
        "cfirst",
        f"call writefile([json_encode([found, expand('%'), line('.'), col('.')])], '{out}')",
        "qa!",
    ]
    done = edit([*editor, *(word for c in commands for word in ("-c", c))], report, tmp_path)
    found, name, line, column = json.loads(out.read_text())
    assert (name, line, column) == ("server.log", 65, 1), done.stderr
    assert found[0] == ["server.log", 65, 1, "e", 1]
    assert {entry[3] for entry in found} <= {"e", "w", "n"}
    assert all(entry[4] == 1 for entry in found) and len(found) > 1


@needs("emacs")
def test_emacs_compile_jumps(report, tmp_path):
    script = """(progn
      (find-file "report.gcc") (compilation-mode) (compilation--ensure-parse (point-max))
      (goto-char (point-min)) (compilation-next-error 0)
      (let ((inhibit-message t)) (compile-goto-error))
      (princ (format "%s:%d:%d\\n" (file-name-nondirectory (or buffer-file-name "?"))
        (line-number-at-pos) (current-column)))
      (with-current-buffer "report.gcc"
        (princ (format "%d %d" compilation-num-errors-found compilation-num-warnings-found))))"""
    done = edit(["emacs", "-Q", "--batch", "--eval", script], report, tmp_path)
    place, counts = done.stdout.strip().splitlines()[-2:]
    assert place == "server.log:65:0", done.stderr
    errors, warnings = map(int, counts.split())
    assert errors == 1 and warnings >= 1


@needs("nvim")
def test_neovim_is_a_language_client(report, tmp_path):
    out = tmp_path / "lsp.json"
    script = tmp_path / "client.lua"
    script.write_text(
        f"""
        local function attach(file)
          vim.cmd('edit ' .. file)
          local id = vim.lsp.start_client({{ name = 'forensics', root_dir = vim.fn.getcwd(),
            cmd = {{ '{sys.executable}', '-m', 'forensics', 'lsp' }} }})
          vim.lsp.buf_attach_client(0, id)
          vim.wait(20000, function() return vim.lsp.buf_get_clients(0)[id] ~= nil end, 50)
        end
        local function ask(method, line, character)
          local params = {{ textDocument = vim.lsp.util.make_text_document_params(),
            position = {{ line = line, character = character }} }}
          local answers = vim.lsp.buf_request_sync(0, method, params, 20000) or {{}}
          for _, answer in pairs(answers) do return answer.result end
        end
        local found = {{}}
        attach('server.log')
        vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 50)
        found.log = vim.diagnostic.get(0)
        found.hover = ask('textDocument/hover', 64, 3)
        found.first = ask('textDocument/definition', 2, 0)
        attach('{FINDING}')
        found.word = ask('textDocument/hover', 10, 8)
        local file = io.open('{out}', 'w')
        file:write(vim.json.encode(found))
        file:close()
        vim.cmd('qa!')
        """
    )
    done = edit(["nvim", "-u", "NONE", "-i", "NONE", "--headless", "-c", f"luafile {script}"], report, tmp_path)
    assert out.exists(), done.stderr
    found = json.loads(out.read_text())
    assert any(d["lnum"] == 64 and d["severity"] == 1 for d in found["log"])
    assert "first failure" in found["hover"]["contents"]["value"]
    assert found["first"]["range"]["start"]["line"] == 64
    assert "nan-probabilities" in found["word"]["contents"]["value"]
