"""Real editors, where they are installed: quickfix of Vim and Neovim, Emacs' compile, Neovim and eglot as language
clients. Of the set-ups that are only documented, what can be checked without the editor."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
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


def documented(language: str) -> list[str]:
    """The blocks of docs/editors.md in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs/editors.md").read_text("utf-8"), re.M | re.S)


def eglot() -> bool:
    if shutil.which("emacs") is None:
        return False
    done = subprocess.run(
        ["emacs", "-q", "--batch", "--eval", "(progn (package-initialize) (require 'eglot))"], capture_output=True
    )
    return done.returncode == 0


@pytest.mark.skipif(not eglot(), reason="no Emacs with eglot")
def test_emacs_is_a_language_client(report, tmp_path):
    [setup] = documented("elisp")
    words = " ".join(json.dumps(w) for w in (sys.executable, "-m", "forensics", "lsp"))
    script = tmp_path / "client.el"
    script.write_text(
        """(package-initialize) (require 'eglot)
        """
        + setup.replace('"forensics" "lsp"', words)
        + """
        (find-file "server.log")
        (apply #'eglot (eglot--guess-contact))
        (let ((until (+ (float-time) 50)))
          (while (and (< (float-time) until) (not (eglot-current-server))) (accept-process-output nil 0.1))
          (flymake-mode 1) (flymake-start)
          (while (and (< (float-time) until) (not (flymake-diagnostics)))
            (accept-process-output nil 0.1) (sit-for 0.1) (flymake-start)))
        (dolist (one (flymake-diagnostics))
          (princ (format "%d %s %s\n" (line-number-at-pos (flymake-diagnostic-beg one)) (flymake-diagnostic-type one)
            (flymake-diagnostic-text one))))
        (goto-char (point-min)) (forward-line 64)
        (princ (format "hover %S\n" (jsonrpc-request (eglot-current-server) :textDocument/hover
          (eglot--TextDocumentPositionParams))))
        (goto-char (point-min)) (forward-line 2)
        (call-interactively #'xref-find-definitions)
        (princ (format "at %d\n" (line-number-at-pos)))"""
    )
    done = edit(["emacs", "-q", "--batch", "-l", str(script)], report, tmp_path)
    assert re.search(r"^65 eglot-error .*first failure", done.stdout, re.M), done.stderr
    assert "**first failure** during prefill" in done.stdout
    assert done.stdout.rstrip().endswith("at 65")


def test_the_documented_problem_matcher_reads_every_line(report):
    tasks = json.loads(documented("json")[0])["tasks"][0]
    pattern = tasks["problemMatcher"]["pattern"]
    assert [tasks["command"], *tasks["args"]] == ["forensics", "analyze", "${file}", "--format", "gcc"]
    rows = (report / "report.gcc").read_text().splitlines()
    found = [re.match(pattern["regexp"], row) for row in rows]
    assert all(found) and len(rows) >= 2
    first = found[0]
    assert [first[pattern[k]] for k in ("file", "line", "column", "severity")] == ["server.log", "65", "1", "error"]


def test_documented_configurations_have_their_formats_syntax():
    for block in documented("json"):
        json.loads(block)
    helix = tomllib.loads(documented("toml")[0])
    assert helix["language-server"]["forensics"] == {"command": "forensics", "args": ["lsp"]}
    assert all("forensics" in one["language-servers"] for one in helix["language"])
