"""A real S3 server on loopback, slow where it is told to be, that remembers which bytes were asked for."""

from __future__ import annotations

import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


@dataclass
class Store:
    """`slow`: seconds that reads of keys with `slow` in their name take. `asked`: the byte ranges that were read."""

    url: str
    slow: float = 0.0
    asked: list[tuple[str, int, int]] = field(default_factory=list)

    def client(self, service: str = "s3", **keys: str) -> Any:
        given = {"aws_access_key_id": "any", "aws_secret_access_key": "any", **keys}
        import boto3

        return boto3.client(service, endpoint_url=self.url, region_name="us-east-1", **given)

    def storage(self, key: str = "any", secret: str = "any") -> dict[str, dict[str, Any]]:
        return {
            "s3": {
                "endpoint_url": self.url,
                "key": key,
                "secret": secret,
                "skip_instance_cache": True,
                "use_listings_cache": False,
            }
        }

    def post(self, what: str, data: bytes = b"") -> None:
        """Tell the server itself something."""
        request = urllib.request.Request(
            f"{self.url}/moto-api/{what}", data=data, method="POST", headers={"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request, timeout=10).read()

    def put(self, key: str, text: str | bytes) -> None:
        self.client().put_object(Bucket="logs", Key=key, Body=text.encode() if isinstance(text, str) else text)


@contextmanager
def serve() -> Iterator[Store]:
    """A server on loopback with the empty bucket `logs`."""
    import moto.server as moto_server
    from werkzeug import serving

    made = Store("")
    inner = moto_server.DomainDispatcherApplication(moto_server.create_backend_app)

    def application(environ: dict[str, Any], start: Any) -> Any:
        if environ["REQUEST_METHOD"] == "GET" and "slow" in environ["PATH_INFO"]:
            time.sleep(made.slow)
        if environ["REQUEST_METHOD"] == "GET" and (asked := _RANGE.fullmatch(environ.get("HTTP_RANGE", ""))):
            made.asked.append((environ["PATH_INFO"], int(asked[1]), int(asked[2])))
        return inner(environ, start)

    server = serving.make_server("127.0.0.1", 0, application, threaded=True)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    made.client().create_bucket(Bucket="logs")
    yield made
    made.post("reset-auth", b"inf")
    made.post("reset")
    server.shutdown()
    thread.join()
