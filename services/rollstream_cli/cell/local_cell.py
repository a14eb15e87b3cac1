"""The supervisor of a cell on this machine: starts an embedded Redis and all services, keeps them alive, stops them in order.

    start: server ─▶ control, replay, learner, actors (all at once; each retries until Redis and the others are there)
    live:  a process that dies is started again; a process that can never work fails the cell; `rs:cell:wanted_actors` is obeyed
    stop:  actors ─▶ learner ─▶ replay ─▶ control ─▶ server; each gets SIGTERM, time to finish, then SIGKILL

Actors stop first because what they still flush must find a learner and shards that take it.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, StoreUnavailable
from rollstream.store import Address, Store, keys, parse_address
from rollstream.store.experiments import Experiments
from rollstream_cli.cell.child import Child, ChildSpec
from rollstream_cli.cell.nursery import Nursery
from rollstream_cli.cell.roles import ROLES, CellPlan, Role, command_of, environment_of
from rollstream_cli.cell.server import KeptServer
from rollstream_cli.cell.wanted import WantedActors

__all__ = ["LocalCell"]

STOP_ORDER: tuple[Role, ...] = ("actor", "learner", "replay", "control")


class LocalCell:
    """All processes of one cell, as one thing that can be started and stopped."""

    def __init__(
        self,
        plan: CellPlan,
        *,
        clock: Clock,
        on_failure: Callable[[str], None],
        on_death: Callable[[str], None] = lambda _: None,
        command: Callable[[Role], tuple[str, ...]] = command_of,
        nursery: Nursery | None = None,
        redis_deadline_s: float = 5.0,
    ) -> None:
        """
        Args:
            on_failure: called, from a thread of the cell, when it cannot work; the message is for a person. The cell does not
                stop itself then: its owner does.
            on_death: called with a sentence when a process died and is going to be started again.
            command: what runs a role; tests pass stand-ins.
            nursery: where first processes may wait already; None: they are started like later ones.
            redis_deadline_s: how long an external Redis may take to answer before the start is given up.
        """
        self.plan = plan
        self.redis_url = plan.redis_url
        self.redis_text = ""
        self.port = 0
        self._clock = clock
        self._on_failure = on_failure
        self._on_death = on_death
        self._gives_up = True
        self._command = command
        self._nursery = nursery
        self._redis_deadline_s = redis_deadline_s
        self._lock = threading.Lock()
        self._children: dict[Role, list[Child]] = {role: [] for role in ROLES}
        self._leaving: list[Child] = []
        self._server: KeptServer | None = None
        self._wanted: WantedActors | None = None
        self._stopping = False
        self._failed = False

    @property
    def url(self) -> str:
        """Where control listens; known once started."""
        host = f"[{self.plan.host}]" if ":" in self.plan.host else self.plan.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Start everything; returns when the server answers and the processes are on their way.

        Raises:
            ConfigError: the port is taken, an address is malformed.
            StoreError: Redis is not there, or refuses. Nothing is left running.
        """
        for folder in (self.plan.directory, self.plan.directory / "logs", self.plan.runs_dir):
            folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port(self.plan.host, self.plan.port)
        try:
            address = self._start_server()
            self.redis_text = str(address)  # without its password
            self._start_services()
            self._obey(address)
        except BaseException:
            self.stop(grace_s=0.0)
            raise

    def _start_server(self) -> Address:
        if self.plan.redis_url:
            address = external_address(self.plan)
            with contextlib.closing(
                Store(address, clock=self._clock, deadline_s=self._redis_deadline_s, name="rollstream-cli")
            ) as store:
                try:
                    store.check()
                except StoreUnavailable as error:
                    raise StoreUnavailable(
                        f"{str(error).rstrip('.')}; start it, or correct ROLLSTREAM_REDIS_URL (when it is not set, the cell starts "
                        "a Redis of its own)"
                    ) from error
            return address
        self._server = KeptServer(self.plan.server_dir, clock=self._clock, on_hopeless=self._fail, on_death=self._on_death)
        address = self._server.start()
        self.redis_url = str(address)
        forget_dead_learners(address, clock=self._clock)
        return address

    def _start_services(self) -> None:
        counts: dict[Role, int] = {
            "learner": self.plan.learners,
            "control": 1,
            "replay": self.plan.replay_shards,
            "actor": self.plan.actors,
        }
        for role in ROLES:
            for number in range(counts[role]):
                self._add(role, number)

    def _obey(self, address: Address) -> None:
        self._wanted = WantedActors(address, clock=self._clock, on_change=self.scale)
        self._wanted.start(self.plan.actors)

    def scale(self, actors: int) -> None:
        """Start or drain actors until there are `actors`; the newest leave first. Repeating it does nothing."""
        with self._lock:
            if self._stopping:
                return
            running = self._children["actor"]
            while len(running) > actors:
                child = running.pop()
                child.ask_to_stop()
                self._leaving.append(child)
            taken = {child.spec.member for child in running}
            number = 0
            while len(running) < actors:
                if f"actor-{number}" not in taken:
                    self._add_locked("actor", number)
                number += 1
            leaving, self._leaving = self._leaving, []
            self._leaving = [child for child in leaving if not child.ended]

    def never_give_up(self) -> None:
        """The cell has been ready once, and shall go on whatever its processes do: they are started again, for ever."""
        self._gives_up = False
        for child in self._all():
            child.never_give_up()

    def processes(self) -> dict[str, int]:
        """Member name -> process id of what runs now, the server included."""
        found = {child.spec.member: pid for child in self._all() if (pid := child.pid) is not None}
        if self._server is not None and (pid := self._server.pid) is not None:
            found["redis"] = pid
        return found

    def restarts(self) -> dict[str, int]:
        """Member name -> how often its process has been started again."""
        found = {child.spec.member: child.restarts for child in self._all()}
        if self._server is not None:
            found["redis"] = self._server.restarts
        return found

    def begin_to_stop(self) -> None:
        """Ask all services at once to stop, because no experiment is running; `stop` waits for them."""
        with self._lock:
            self._stopping = True
        self._ask(STOP_ORDER)

    def stop(self, *, grace_s: float = 20.0, hurry: threading.Event | None = None, idle: bool = False) -> list[str]:
        """Stop everything, in order; safe to repeat.

        Args:
            grace_s: seconds for all services together; what is left then is killed.
            hurry: once set, nothing gets time any more.
            idle: no experiment is running, so nobody has anything for somebody else, and all services may stop at once.

        Returns:
            Members that had to be killed.
        """
        with self._lock:
            self._stopping = True
        killed: list[str] = []
        deadline = Deadline(self._clock, after_s=grace_s)
        if idle:
            self.begin_to_stop()
        for role in STOP_ORDER:
            if not idle:
                self._ask([role])
            children = self._children[role] + (self._leaving if role == "actor" else [])
            for child in children:
                if not child.end(remaining_s=deadline.remaining_s, hurry=hurry):
                    killed.append(child.spec.member)
            self._children[role] = []
        self._leaving = []
        if self._wanted is not None:
            self._wanted.stop()
            self._wanted = None
        if self._server is not None:
            self._server.stop()
            self._server = None
        return killed

    def _ask(self, roles: Sequence[Role]) -> None:
        """SIGTERM to all processes of `roles`, and a wake-up for those that wait for something to do."""
        for role in roles:
            for child in self._children[role] + (self._leaving if role == "actor" else []):
                child.ask_to_stop()
        if self._wanted is not None:
            self._wanted.wake_everybody()

    def _add(self, role: Role, number: int) -> None:
        with self._lock:
            self._add_locked(role, number)

    def _add_locked(self, role: Role, number: int) -> None:
        member = "control" if role == "control" else f"{role}-{number}"
        environment = environment_of(self.plan, role, member=member, number=number, redis_url=self.redis_url, port=self.port)
        child = Child(
            ChildSpec(
                member=member,
                role=role,
                command=self._command(role),
                environment=environment,
                log=self.plan.directory / "logs" / f"{member}.log",
            ),
            clock=self._clock,
            on_hopeless=self._fail,
            on_death=self._on_death,
            nursery=self._nursery,
        )
        if not self._gives_up:
            child.never_give_up()
        self._children[role].append(child)
        child.start()

    def _all(self) -> Iterator[Child]:
        with self._lock:
            return iter([child for children in self._children.values() for child in children] + self._leaving)

    def _fail(self, message: str) -> None:
        with self._lock:
            if self._failed or self._stopping:
                return
            self._failed = True
        self._on_failure(message)


def forget_dead_learners(address: Address, *, clock: Clock) -> None:
    """Release the leases in the data of an embedded server: whoever held them was killed together with it.

    Their experiments are then claimed at once, instead of when the leases run out. Fencing tokens stay.
    """
    with contextlib.closing(Store(address, clock=clock, deadline_s=30.0, name="rollstream-cli")) as store:
        held = [keys.experiment_lease(experiment) for experiment in Experiments(store).open_ids()]
        if held:
            store.run("release the leases of dead learners", lambda client: client.delete(*held))


def external_address(plan: CellPlan) -> Address:
    """The Redis that the environment names, with password and certificates from their own variables."""
    read = plan.environment.get
    return parse_address(
        plan.redis_url,
        ca_file=read("ROLLSTREAM_REDIS_CA_FILE"),
        cert_file=read("ROLLSTREAM_REDIS_CERT_FILE"),
        key_file=read("ROLLSTREAM_REDIS_KEY_FILE"),
        password=read("ROLLSTREAM_REDIS_PASSWORD"),
    )


def free_port(host: str, port: int) -> int:
    """`port` when it can be bound now, a free one when it is 0.

    Control binds it a moment later. It is fixed here, so that the URL survives a restart of control.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} ({error.strerror}); free the port, or choose another with --port (0: any)"
            ) from error
        chosen: int = probe.getsockname()[1]
        return chosen
