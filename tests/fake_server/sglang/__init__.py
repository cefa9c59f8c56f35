"""A stand-in for sglang: real arguments, log lines in the program's formats, an API on a socket, no model.

Replay's own machinery (plan, run, stop, resume, containers) is tested with it in seconds. What it does is told by
variables: `FAKE_NEEDS` (settings without which it fails, `dest=value dest=value`), `FAKE_FAILS` (`nan`, `oom`, `load`,
`silent`, `hang`; `FAKE_FAILS_<dtype>` for one dtype, `no`: it works), `FAKE_SHARD_S` (seconds for each of four shards), `FAKE_STARTS` (a file that counts starts).
"""
