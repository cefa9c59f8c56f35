"""A real OpenSSH server on loopback with keys of its own, and a client configuration that reaches it."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Sshd:
    """Started on enter, ended on exit. `config` is a client configuration; `address` what `--host` takes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.config = folder / "ssh_config"
        self.address = f"ssh://{self.user}@127.0.0.1:{self.port}"

    def __enter__(self) -> "Sshd":
        Path("/run/sshd").mkdir(parents=True, exist_ok=True)
        for name in ("host", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True)
        shutil.copy(self.folder / "client.pub", self.folder / "authorized")
        os.chmod(self.folder / "authorized", 0o600)
        server = self.folder / "sshd_config"
        server.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nPidFile {self.folder}/pid\n"
            f"AuthorizedKeysFile {self.folder}/authorized\nPasswordAuthentication no\nPermitRootLogin yes\n"
            "StrictModes no\nUsePAM no\n"
        )
        self.config.write_text(
            f"Host *\n  IdentityFile {self.folder}/client\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n"
            f"  UserKnownHostsFile {self.folder}/known\n  LogLevel ERROR\n"
        )
        self.process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(server)], stderr=subprocess.DEVNULL)
        self._wait()
        return self

    def _wait(self) -> None:
        for _ in range(100):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("sshd did not start")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
