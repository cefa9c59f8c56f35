"""The arguments that the stand-in takes, spelt as the program spells them; a `--config` file is read before the rest."""

import argparse
from pathlib import Path

SWITCHES = ("--disable-cuda-graph", "--disable-overlap-schedule", "--trust-remote-code", "--enable-dp-attention")


class ServerArgs:
    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--model-path", "--model", required=True)
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=30000)
        parser.add_argument("--dtype", default="auto", choices=["auto", "half", "float16", "bfloat16", "float32"])
        parser.add_argument("--kv-cache-dtype", default="auto", choices=["auto", "fp8_e5m2", "fp8_e4m3"])
        parser.add_argument("--attention-backend", choices=["torch_native", "triton", "flashinfer"])
        parser.add_argument("--sampling-backend", choices=["pytorch", "flashinfer"])
        for name in ("--tp-size", "--dp-size", "--nnodes"):
            short = [name.replace("-size", "")] if name.endswith("-size") else []
            parser.add_argument(name, *short, type=int, default=1)
        parser.add_argument("--node-rank", type=int, default=0)
        parser.add_argument("--dist-init-addr")
        parser.add_argument("--device", default="cpu")
        parser.add_argument("--max-running-requests", type=int)
        parser.add_argument("--mem-fraction-static", type=float)
        parser.add_argument("--served-model-name")
        parser.add_argument("--api-key")
        parser.add_argument("--admin-api-key")
        parser.add_argument("--config")
        for name in SWITCHES:
            parser.add_argument(name, action="store_true")


def prepare_server_args(argv: list) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    return parser.parse_args(with_config(argv))


def with_config(argv: list) -> list:
    """The file's settings stand before the command line's, so that the latter win."""
    if "--config" not in argv:
        return argv
    at = argv.index("--config")
    first = []
    for line in Path(argv[at + 1]).read_text().splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        value = value.strip().strip("'\"")
        if not key.strip() or value == "false":
            continue
        first += ["--" + key.strip().replace("_", "-"), *([] if value == "true" else [value])]
    return [*first, *argv[:at], *argv[at + 2 :]]
