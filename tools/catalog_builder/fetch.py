"""Downloads the wheel of a release and keeps its Python files."""

import glob
import os
import subprocess
import sys
import time
import zipfile

from catalog_builder.settings import CACHE, SRC


def wanted(name):
    return (
        name.startswith("sglang/")
        and name.endswith(".py")
        and not name.startswith(("sglang/multimodal_gen", "sglang/test", "sglang/lang/", "sglang/eval"))
    )


def fetch(versions):
    dl = os.path.join(CACHE, "dl")
    os.makedirs(dl, exist_ok=True)
    for v in versions:
        out = os.path.join(SRC, v)
        if os.path.isdir(out):
            continue
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "--no-cache-dir",
                "--only-binary",
                ":all:",
                f"sglang=={v}",
                "-d",
                dl,
            ],
            check=True,
        )
        wheel = glob.glob(os.path.join(dl, f"sglang-{v}-*.whl"))[0]
        with zipfile.ZipFile(wheel) as z:
            for n in filter(wanted, z.namelist()):
                z.extract(n, out + ".tmp")
        os.rename(out + ".tmp", out)
        os.remove(wheel)
        time.sleep(1)
