"""A small report made by hand, with hostile text where a log's text goes."""

from forensics.schema.report import (
    AttemptInfo,
    Change,
    FactValue,
    FailureInfo,
    FirstFailure,
    FixInfo,
    GroundInfo,
    HypothesisInfo,
    LaunchInfo,
    NextStep,
    RanksInfo,
    Report,
    RiskInfo,
    SourceInfo,
    Tool,
    VersionInfo,
    Where,
)

HOSTILE = (
    "\x1b[31mred\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \u202egnp.exe\u2066 \x00\x07\x9b31m "
    "<script>alert(1)</script> <img src=x onerror=alert(2)> [x](javascript:alert(3)) ![i](http://evil.example/i.png) "
    "{0} %0A::error::boo ``` @everyone #1 =cmd|'/c calc'!A1 \r\n::warning::x \u2028 \u0085 \ud800".replace(
        "\ud800", "\ufffd"
    )
)


def where(line: int, text: str | None = None, path: str = "logs/ser ver,1.log") -> Where:
    return Where(path=path, line=line, column=3, byte_start=10 * line, byte_end=10 * line + 9, text=text)


def example(text: str = "CUDA error: device-side assert triggered") -> Report:
    first = FirstFailure(
        stage="decode", rank="TP3", reporters=["TP3", "TP1"], where=where(47, text), text=text, failure="L1.F1",
        context=[where(46, "before"), where(47, text), where(48, "after")],
    )  # fmt: skip
    likely = HypothesisInfo(
        id="L1.H1", kind="finding", finding="fp16-overflow", title=f"float16 overflows {text}", verdict="likely",
        explains=["L1.F1"], category="numerics", status="confirmed", sources=["sgl-project/sglang#1"],
        grounds=[
            GroundInfo(id="L1.H1.G1", side="for", strength="must", condition="nan-probabilities", why=text, where=[where(47), where(60)]),
            GroundInfo(id="L1.H1.G2", side="against", strength="against", condition="x", why="a control prints it", where=[where(5)]),
            GroundInfo(id="L1.H1.G3", side="unknown", strength="strong", condition="gpu.sm = 120", settle="python -m sglang.check_env"),
        ],
        fix=[
            FixInfo(kind="flag", op="set", name="--dtype", value="bfloat16", runnable=True),
            FixInfo(kind="env", op="set", name="A_B", value="x y"),
            FixInfo(kind="package", op="at-least", name="sglang", version="0.5.9"),
            FixInfo(kind="host", do=text),
        ],
    )  # fmt: skip
    gone = HypothesisInfo(
        id="L1.H2", kind="finding", finding="kernel-tile-exceeds-shared-memory", title="Kernel tile too large",
        verdict="ruled-out", why="graph capture was passed on every rank",
        grounds=[GroundInfo(id="L1.H2.G1", side="against", strength="excludes", condition="stage", where=[where(30)])],
    )  # fmt: skip
    launch = LaunchInfo(
        id="L1", lines=(1, 99), path="logs/ser ver,1.log", reached="serving", ended="crashed",
        ranks=RanksInfo(expected=["TP0", "TP1"], seen=["TP0"], missing=["TP1"]),
        version=VersionInfo(low="0.5.8", high="0.5.9"),
        facts={"args.dtype": FactValue(value="float16", where=where(2)), "launch.command": FactValue(value=f"python {text}")},
        first_failure=first,
        failures=[
            FailureInfo(id="L1.F1", role="root", outcome="terminal", count=1, ranks=["TP3"], where=where(47), text=text),
            FailureInfo(id="L1.F2", role="cascade", outcome="terminal", count=7, ranks=["TP1"], where=where(60), text=text),
        ],
        hypotheses=[likely, gone],
        risks=[RiskInfo(finding="rope", title=text, where=[where(4)])],
        next=[NextStep(kind="experiment", do=f"relaunch {text}", command="python -m sglang.launch_server --dtype bfloat16")],
        notes=[text],
    )  # fmt: skip
    attempt = AttemptInfo(
        launch="L1", reached="serving", ended="crashed", outcome=text, changed=[Change(kind="flag", name="--dtype", after=text)],
        refutes={"fp16-overflow": text},
    )  # fmt: skip
    return Report(
        tool=Tool(version="0", rules=1, findings=2), sources=[SourceInfo(path="logs/ser ver,1.log", bytes=1, lines=99)],
        launches=[launch], headline=f"L1 crashed in decode: {text}", focus="L1", attempts=[attempt, attempt.model_copy()],
    )  # fmt: skip
