"""A client of the control interface: faults, journal, clock, proxies, operations, states.

cluster = Client("127.0.0.1:18080")
rule = cluster.faults.add(method="CommitTransaction", action="lose_reply", skip=2)
...
cluster.faults.wait(rule)
assert cluster.journal.count("CommitTransaction") == 3
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from .operations import Operations

REQUEST_TIMEOUT = 60.0


class ControlError(Exception):
    """The control interface refused a request; the text says why."""


@dataclass(frozen=True)
class Fault:
    """A rule as it was when asked for. `seen` counts matching calls, `hits` those acted upon.

    `first_hit` is the number of the first of these in the journal, or 0.
    """

    id: int
    action: str
    method: str | list[str] | None
    when: str
    where: dict[str, Any]
    proxy: str | None
    label: str | None
    skip: int
    times: int | None
    armed_by: int | None
    error: dict[str, Any] | None
    seconds: float | None
    pid: int | None
    pgid: int | None
    seen: int
    hits: int
    first_hit: int


@dataclass(frozen=True)
class Entry:
    """One request in the journal; `time` is the wall clock's, in seconds since the epoch."""

    n: int
    time: float
    protocol: str
    proxy: str
    method: str
    args: dict[str, Any]
    label: str | None
    error: dict[str, Any] | None
    """{code, message} of what the client was answered, if it was an error.

    For a late request: the error that its application met, which no client received."""
    fault: str | None
    """The action of the rule that hit the request."""
    held: bool | None = None
    """True while a rule holds the request, False once it was applied; None if none held it."""
    seconds: float | None = None
    """How long after `time` it was over; None until then."""


class Client:
    """The cluster at `address` ("127.0.0.1:18080").

    Every call raises ControlError when the cluster refuses it, OSError when it does not answer.
    """

    def __init__(self, address: str) -> None:
        self._root = f"http://{address.removeprefix('http://')}/minicluster"
        # A proxy set in the environment must not come between a test and the loopback.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.faults = Faults(self)
        self.journal = Journal(self)
        self.clock = ClusterClock(self)
        self.proxies = Proxies(self)
        self.operations = Operations(self.request)

    def save(self, path: str) -> None:
        """Save the whole state to a file with an absolute name."""
        self.request("POST", "/save", {"path": str(path)})

    def load(self, path: str) -> None:
        """Replace the whole state by a saved one; faults and journal stay."""
        self.request("POST", "/load", {"path": str(path)})

    def renew_leases(self) -> None:
        """Let every transaction live on as if its owner had pinged it now.

        In a state that was saved a while ago, their leases have run out by the wall clock.
        """
        self.request("POST", "/leases")

    def record(self, folder: str | None, methods: Sequence[str] = ()) -> None:
        """Save the state into ``folder`` after each request of these methods, as `N.state`.

        N is the number of the request in the journal. With None save no more.
        """
        given = {"folder": folder, "methods": list(methods)}
        self.request("POST", "/record", given)

    def set_label(self, label: str | None) -> None:
        """Stamp the requests from now on, for rules and the journal to tell phases apart."""
        self.request("POST", "/label", {"label": label})

    def set_queue_agent_delay(self, seconds: float) -> None:
        """Set the age that the queue agent's attributes may have; 0, the default, means fresh."""
        self.request("POST", "/queue_agent", {"delay": seconds})

    def set_rows_per_tablet(self, rows: int) -> None:
        """Set how many rows of one tablet a transaction may touch; 100,000 is the default."""
        self.request("POST", "/limits", {"rows_per_tablet": rows})

    def set_mount_cache(self, seconds: float) -> None:
        """Let each proxy remember for so long which table a path leads to; 0 by default.

        A real proxy does so for about 15 seconds.
        """
        self.request("POST", "/limits", {"mount_cache": seconds})

    def set_versions_per_row(self, versions: int) -> None:
        """Keep at most so many versions of a row of a sorted table; 1000 by default.

        A row loses its oldest ones when it is next written.
        """
        self.request("POST", "/limits", {"versions_per_row": versions})

    def status(self) -> dict[str, Any]:
        """Return {pid, cluster_name, nodes, requests}."""
        found: dict[str, Any] = self.request("GET", "")
        return found

    def request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Any:
        """Send one request to the control interface and return the answer, parsed."""
        request = urllib.request.Request(
            self._root + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                raise ControlError(json.loads(text)["message"]) from None
            except (ValueError, KeyError):
                raise ControlError(text) from None


class Faults:
    """Rules that make chosen requests go wrong."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def add(
        self,
        *,
        action: str,
        method: str | list[str] | None = None,
        when: str = "before",
        where: dict[str, Any] | None = None,
        proxy: str | None = None,
        label: str | None = None,
        skip: int = 0,
        times: int | None = 1,
        armed_by: Fault | None = None,
        error: dict[str, Any] | None = None,
        seconds: float | None = None,
        pid: int | None = None,
        pgid: int | None = None,
    ) -> Fault:
        """Add a rule.

        action: "fail" (answer `error`: {code, message}), "delay" (for `seconds`, or until the rule
        is removed), "hang_up" (close the connection), "lose_reply" (apply, then close it), "kill"
        (SIGKILL to `pid` or to the process group `pgid`), "stop" (SIGSTOP to it; the request is
        served, SIGCONT is up to the test), "proxy_down" (stop the RPC proxy),
        "hold" (apply and answer on `release`), "apply_late" (close the connection at once, apply
        on `release`).
        method: a command of HTTP ("insert_rows"), a method of RPC ("ModifyRows"), a list of them,
        or None for all. when: "before" or "after" the request is applied.
        where: arguments as the journal shows them; a string with `*` is a pattern.
        skip: matches to let pass first. times: how often to act, None for always.
        armed_by: another rule; calls match only once that one was hit.
        """
        given = {
            "action": action,
            "method": method,
            "when": when,
            "where": where or {},
            "proxy": proxy,
            "label": label,
            "skip": skip,
            "times": times,
            "armed_by": armed_by.id if armed_by is not None else None,
            "error": error,
            "seconds": seconds,
            "pid": pid,
            "pgid": pgid,
        }
        return Fault(**self._client.request("POST", "/faults", given))

    def list(self) -> list[Fault]:
        return [Fault(**rule) for rule in self._client.request("GET", "/faults")]

    def get(self, rule: Fault | int) -> Fault:
        """Return the rule as it is now."""
        return Fault(**self._client.request("GET", f"/faults/{_id(rule)}"))

    def remove(self, rule: Fault | int) -> None:
        """Remove a rule; the calls that it delays or holds continue."""
        self._client.request("DELETE", f"/faults/{_id(rule)}")

    def clear(self) -> None:
        self._client.request("DELETE", "/faults")

    def release(self, rule: Fault | int, timeout: float = 60.0) -> Sequence[Entry]:
        """Apply the calls that the rule holds, in their order; return their journal entries.

        The rule stays. Raises: ControlError when a call is not finished after `timeout` seconds.
        """
        path, given = f"/faults/{_id(rule)}/release", {"timeout": timeout}
        entries = self._client.request("POST", path, given, timeout + REQUEST_TIMEOUT)
        return [Entry(**entry) for entry in entries]

    def wait(self, rule: Fault | int, timeout: float = 60.0, *, hits: int = 1) -> Fault:
        """Block until the rule has `hits` hits. Raises ControlError after `timeout` seconds."""
        given = {"hits": hits, "timeout": timeout}
        path = f"/faults/{_id(rule)}/wait"
        return Fault(**self._client.request("POST", path, given, timeout + REQUEST_TIMEOUT))


class Journal:
    """The requests that the cluster got, in their order; the last hundred thousand are kept."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, method: str | None = None, *, since: int = 0) -> list[Entry]:
        """Return the entries after number `since`, of one method or of all."""
        query = urlencode({"since": since} | ({"method": method} if method else {}))
        return [Entry(**entry) for entry in self._client.request("GET", f"/journal?{query}")]

    def counts(self) -> dict[str, int]:
        """Return the number of requests by method, those dropped from the journal included."""
        found: dict[str, int] = self._client.request("GET", "/counts")
        return found

    def count(self, method: str) -> int:
        return self.counts().get(method, 0)

    def clear(self) -> None:
        self._client.request("DELETE", "/journal")


class ClusterClock:
    """The cluster's own clock."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return float(self._client.request("GET", "/clock")["now"])

    def advance(self, seconds: float) -> float:
        """Move the clock forward, so that transactions expire and rows age; return the time."""
        return float(self._client.request("POST", "/clock", {"advance": seconds})["now"])


class Proxies:
    """The RPC proxies."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> dict[str, bool]:
        """Return whether each proxy is up, by its address."""
        found: dict[str, bool] = self._client.request("GET", "/proxies")
        return found

    def down(self, address: str) -> None:
        """Take a proxy down as if its process died: its connections and transactions are lost."""
        self._client.request("POST", "/proxies", {"address": address, "up": False})

    def up(self, address: str) -> None:
        """Bring a proxy up again on the address it had."""
        self._client.request("POST", "/proxies", {"address": address, "up": True})


def _id(rule: Fault | int) -> int:
    return rule.id if isinstance(rule, Fault) else rule
