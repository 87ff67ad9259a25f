"""How the launchers of several machines meet, and hear of one another's failures."""

from __future__ import annotations

import json
import time
import urllib.parse
import uuid
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from ... import _core
from ..elastic.multiprocessing.errors import ProcessFailure
from ..store import DistNetworkError, DistStoreError, TCPStore

__all__ = ["Nodes"]

# Seconds that launchers wait for each other.
_PATIENCE = 900
# A message of a watch holds 64 KiB.
_LONGEST_MESSAGE = 8000


class Nodes:
    """The launchers of all machines: one of them keeps the store, to which all are connected."""

    def __init__(self, config: Any) -> None:
        self._config = config
        self.count: int = config.max_nodes
        self.number = 0
        self.run_id: str = config.run_id
        self.max_restarts: int = config.max_restarts
        self.store: Any = None
        self._watch: Any = None
        self._attempt = 0
        seconds = config.rdzv_timeout if config.rdzv_timeout > 0 else config.rdzv_configs.get("join_timeout", _PATIENCE)
        self._patience = timedelta(seconds=int(seconds))

    def _address(self) -> tuple[str, int]:
        endpoint = self._config.rdzv_endpoint
        if not endpoint:
            return "127.0.0.1", 0
        parts = urllib.parse.urlsplit(f"//{endpoint}")
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ValueError(f"--rdzv-endpoint {endpoint}: the port must be a number from 0 to 65535") from None
        if not host:
            raise ValueError(f"--rdzv-endpoint {endpoint} is no host:port")
        return host, 29400 if port is None else port

    def _open_store(self, hosts: bool) -> None:
        self.store = TCPStore(*self._address(), None, hosts, self._patience, False)

    @property
    def _hosts(self) -> bool:
        return self.store is not None and self.store._server is not None

    def meet(self) -> None:
        """Opens the store of the job, or finds it; this machine's number follows."""
        config = self._config
        if self.count == 1:
            self._open_store(hosts=True)
            return
        if not config.rdzv_endpoint:
            raise ValueError(f"--nnodes {self.count} needs --master-addr, or --rdzv-endpoint host:port")
        if config.rdzv_backend == "static":
            self.number = int(config.rdzv_configs.get("rank", 0))
            if not 0 <= self.number < self.count:
                raise ValueError(f"--node-rank {self.number} is not below --nnodes {self.count}")
            self._open_store(hosts=self.number == 0)
        else:
            self._open_or_find_store()
            self.number = 0 if self._hosts else self.store.add("nodes", 1)
            if self.number >= self.count:
                raise ValueError(f"more launchers have come to {config.rdzv_endpoint} than --nnodes {self.count}")
        if self._hosts:
            self.store.set("job", f"{self.max_restarts} {self.run_id}")
        restarts, _, run_id = self.store.get("job").decode().partition(" ")
        if self.run_id not in ("none", run_id):
            raise ValueError(f"{config.rdzv_endpoint} serves the job {run_id}, not --rdzv-id {self.run_id}")
        self.max_restarts, self.run_id = int(restarts), run_id

    def _open_or_find_store(self) -> None:
        """The store is kept by the launcher on whose machine the endpoint is, and which comes first."""
        wish = str(self._config.rdzv_configs.get("is_host", "")).lower()
        if wish in ("0", "false", "f", "no", "n"):
            self._open_store(hosts=False)
            return
        try:
            self._open_store(hosts=True)
        except DistNetworkError:
            if wish:
                raise
            self._open_store(hosts=False)

    def begin(self, attempt: int) -> list[int]:
        """Waits for the launchers of all machines; how many workers each has."""
        workers = self._config.nproc_per_node
        self._attempt = attempt
        if self.count == 1:
            return [workers]
        self._part()
        own = f"{workers} {uuid.uuid4().hex}"
        keys = [f"begin/{attempt}/{node}" for node in range(self.count)]
        self.store.set(keys[self.number], own)
        try:
            self.store.wait(keys, self._patience)
        except DistStoreError:
            late = [node for node, key in enumerate(keys) if not self.store.check([key])]
            raise TimeoutError(
                f"the launchers of nodes {late} have not come to {self._config.rdzv_endpoint} within "
                f"{self._patience.total_seconds():g} seconds"
            ) from None
        told = [value.decode() for value in self.store.multi_get(keys)]
        if told[self.number] != own:
            raise ValueError(f"two launchers have --node-rank {self.number}")
        host, port = self.store._client.host, self.store.port
        self._watch = _core._distributed.Watch(host, port, f"launchers/{attempt}", self.number, self.count)
        return [int(words.split()[0]) for words in told]

    def failure(self) -> str | None:
        """What has gone wrong on another machine."""
        if self._watch is None or (text := self._watch.failure()) is None:
            return None
        return str(text)

    @staticmethod
    def read_failure(text: str) -> tuple[int, ProcessFailure] | str:
        """The rank that failed on another machine, and how; or what happened to a launcher, in words."""
        try:
            told = json.loads(text[text.index("{") :])
            return told.pop("rank"), ProcessFailure(**told)
        except (ValueError, TypeError, KeyError):
            # To a watch, launchers are ranks.
            return f"the launcher of {text.removeprefix('the store of ').replace('rank', 'node', 1)}"

    def tell_failure(self, rank: int, failure: ProcessFailure) -> None:
        """Tells the launchers of all machines that a worker has failed here."""
        if self._watch is not None:
            told = {"rank": rank, **asdict(failure), "message": failure.message[-_LONGEST_MESSAGE:]}
            self._watch.fail(json.dumps(told))

    def tell_end(self, why: str) -> None:
        """Tells the launchers of all machines that this one ends."""
        if self._watch is not None:
            self._watch.fail(why)

    def tell_success(self) -> None:
        """Says that all workers of this machine have succeeded."""
        if self.count > 1:
            self.store.set(f"success/{self._attempt}/{self.number}", b"1")

    def have_all_succeeded(self) -> bool:
        """Tells whether the workers of all machines have succeeded."""
        try:
            return self.count == 1 or self.store.check([f"success/{self._attempt}/{node}" for node in range(self.count)])
        except DistNetworkError:
            return False  # The watch tells more.

    def _part(self) -> None:
        if self._watch is not None:
            self._watch.goodbye()
            self._watch = None

    def end(self, patience: float) -> None:
        """Takes leave; the store stays until the other launchers have done so."""
        if self._hosts and self._watch is not None:
            deadline = time.monotonic() + patience
            while self.store._server.ranks() > 1 and time.monotonic() < deadline:
                time.sleep(0.02)
        self._part()
        if self._hosts:
            self.store._server.stop()
        self.store = None
