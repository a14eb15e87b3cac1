"""REST of a cell as an end-to-end test needs it, also from inside another network namespace.

With a `prefix` (such as `nsenter --net=/run/netns/x --`) each request is made by a small child process under that prefix: the
address may only exist there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "Api"]

ANSWER_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status and body of a reply; status 0: nobody answered."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A cell at `url`."""

    url: str
    token: str = ""
    prefix: Sequence[str] = ()

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        """One request; never raises because of what the other side does."""
        if not self.prefix:
            return request(method, self.url + path, self.token, body)
        child = subprocess.run(
            [*self.prefix, sys.executable, __file__],
            input=json.dumps([method, self.url + path, self.token, body]),
            capture_output=True,
            text=True,
            timeout=2 * ANSWER_WITHIN_S,
            check=True,
        )
        status, answer = json.loads(child.stdout)
        return Answer(status=status, body=answer)

    def get(self, path: str) -> Any:
        """The body of a 200, or None while there is no such answer."""
        answer = self.ask("GET", path)
        return answer.body if answer.status == 200 else None


def request(method: str, url: str, token: str, body: Any) -> Answer:
    """One HTTP request."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, data=data, headers=headers, method=method), timeout=ANSWER_WITHIN_S
        ) as reply:
            return Answer(status=reply.status, body=json.loads(reply.read() or b"null"))
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        try:
            return Answer(status=error.code, body=json.loads(text))
        except ValueError:
            return Answer(status=error.code, body=text)
    except OSError as error:
        return Answer(status=0, body=str(error))


if __name__ == "__main__":
    answered = request(*json.load(sys.stdin))
    json.dump([answered.status, answered.body], sys.stdout)
