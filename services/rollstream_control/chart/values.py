"""Everything that `helm install --set` can change, as typed models: `values.schema.json` and its descriptions come from here.

Names are Helm's camelCase outside and snake_case inside. The defaults here and in `values.yaml` are the same; a test compares them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, StringConstraints, field_validator
from pydantic.alias_generators import to_camel
from typing_extensions import TypeAliasType

from rollstream.config import ExperimentSpec, Frozen

__all__ = ["ChartValues", "Values"]

Quantity = TypeAliasType(
    "Quantity", Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?)?$")] | int | float
)
Size = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?([kMGTPE]i?)?$")]
PullPolicy = Literal["IfNotPresent", "Always", "Never"]
Token = Annotated[str, StringConstraints(pattern=r"^(.{8,})?$")]


class Values(Frozen):
    """A part of the values: camelCase outside."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)


class Image(Values):
    """One image."""

    repository: str = Field(min_length=1)
    """Name of the image without registry and tag."""
    tag: str = ""
    """Tag; empty takes the chart's appVersion."""
    digest: str = Field(default="", pattern=r"^(sha256:[0-9a-f]{64})?$")
    """`sha256:...` instead of a tag; empty uses the tag."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When nodes pull the image; IfNotPresent because tags of releases do not move."""


class Images(Values):
    """The two images of the project."""

    core: Image = Image(repository="rollstream-core")
    """Image of control and replay; it has no torch."""
    torch: Image = Image(repository="rollstream-torch")
    """Image of actors and learners."""
    pull_secrets: tuple[dict[str, JsonValue], ...] = ()
    """Secrets for private registries, as in a pod's `imagePullSecrets`; none for public ones."""


class Global(Values):
    """Values that a parent chart shares with its parts; others than these may stand here."""

    model_config = ConfigDict(extra="allow")

    image_registry: str = ""
    """Registry put in front of every image name, also of Redis; empty takes the names as they are."""


class Auth(Values):
    """Who may ask control."""

    existing_secret: str = ""
    """Secret with the keys `operator-token` and `viewer-token`; empty lets the chart make one."""
    operator_token: Token = ""
    """Token of those who may change things, at least 8 characters; empty draws one at install and keeps it."""
    viewer_token: Token = ""
    """Token of those who may only look, at least 8 characters; empty draws one at install and keeps it."""


class Resources(Values):
    """Requests and limits of one container."""

    requests: dict[str, Quantity] = Field(default_factory=dict)
    """What the scheduler keeps free for it, e.g. `cpu: 100m`, `memory: 128Mi`."""
    limits: dict[str, Quantity] = Field(default_factory=dict)
    """What it may not exceed; no CPU limit by default, because throttling shows as unexplained waiting."""


class Persistence(Values):
    """A volume that outlives pods."""

    enabled: bool = True
    """Claim a volume; false uses an emptyDir, which is lost with its pod."""
    size: Size = "4Gi"
    """Size of the volume that is claimed."""
    storage_class: str = ""
    """StorageClass; empty takes the cluster's default."""
    when_deleted: Literal["Retain", "Delete"] = "Retain"
    """What `helm uninstall` does to the claim, from Kubernetes 1.27 on; Retain, because data is easier to delete than to get back."""


class Redis(Values):
    """Redis of the cell: one pod for trials, or a server elsewhere."""

    enabled: bool = True
    """Run Redis in this release; false needs `externalUrl`."""
    external_url: str = Field(default="", pattern=r"^(rediss?://.+)?$")
    """`redis://host:6379/0` or `rediss://...` (TLS) of a server elsewhere; put its password into a Secret, not here."""
    existing_secret: str = ""
    """Secret that holds the password; empty draws one for the chart's own Redis and means none for an external one."""
    existing_secret_key: str = Field(default="redis-password", min_length=1)
    """Key inside `existingSecret`."""
    ca_secret: str = ""
    """Secret with `ca.crt`, the authority that signed the certificate of an external Redis; empty takes the system's."""
    image: Image = Image(repository="redis", tag="7-bookworm")
    """Image of Redis 7.0 or later."""
    maxmemory: str = Field(default="1gb", pattern=r"^[0-9]+(kb|mb|gb|k|m|g)?$")
    """Memory for data, in Redis' units; keep it a third below the container's limit, for buffers and rewriting the log."""
    persistence: Persistence = Persistence()
    """Where the append-only file lies."""
    resources: Resources = Resources(requests={"cpu": "100m", "memory": "256Mi"}, limits={"memory": "1536Mi"})
    """Requests and limits of Redis."""


class Service(Values):
    """How control is reached."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """Kind of Service; ClusterIP because who reaches control can run code on actors."""
    port: int = Field(default=80, ge=1, le=65_535)
    """TCP port of the Service; control itself listens on 8080."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the Service, e.g. for a cloud's load balancer; none."""


class Control(Values):
    """The REST API, the scheduler and the scale of actors."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe log line of every service; info tells life-cycle events only."""
    service: Service = Service()
    """How control is reached."""
    resources: Resources = Resources(requests={"cpu": "50m", "memory": "128Mi"}, limits={"memory": "512Mi"})
    """Requests and limits of control; checking a submitted environment takes most of the memory."""


class Replay(Values):
    """Replay shards: the index of tables."""

    shards: int = Field(default=1, ge=1, le=64)
    """Replay processes; a table is spread over as many as its spec says (`table_shards`). One holds the index of millions of items."""
    resources: Resources = Resources(requests={"cpu": "100m", "memory": "128Mi"}, limits={"memory": "2Gi"})
    """Requests and limits of a shard: some 50 bytes an item."""


class Learner(Values):
    """Learners: each runs one experiment at a time."""

    replicas: int = Field(default=1, ge=0, le=64)
    """Learner pods; as many as experiments that should run at once."""
    termination_grace_period_seconds: int = Field(default=60, ge=5)
    """Seconds to write a last checkpoint after SIGTERM; 60 is enough for a gigabyte on a slow disk."""
    persistence: Persistence = Persistence()
    """Where checkpoints, reports and summaries lie."""
    resources: Resources = Resources(requests={"cpu": "200m", "memory": "512Mi"}, limits={"memory": "3Gi"})
    """Requests and limits of a learner; a GPU goes here (`limits: {nvidia.com/gpu: 1}`)."""


class Autoscaling(Values):
    """Who decides how many actors there are."""

    mode: Literal["control", "hpa"] = "control"
    """`control`: `PUT /v1/cell/actors` scales; `hpa`: a HorizontalPodAutoscaler does, by CPU, and PUT answers 409."""
    min_replicas: int = Field(default=1, ge=1)
    """Fewest actors of the autoscaler."""
    max_replicas: int = Field(default=16, ge=1)
    """Most actors of the autoscaler; a bound on what a run may cost."""
    target_cpu_utilization_percentage: int = Field(default=80, ge=1, le=1000, alias="targetCPUUtilizationPercentage")
    """CPU use, relative to the request, that the autoscaler aims at; below 100 so that starved learners pull more actors up."""


class Actor(Values):
    """Actors: they step environments."""

    replicas: int = Field(default=2, ge=0, le=10_000)
    """Actors at install. An upgrade keeps what the API scaled to meanwhile, unless this value itself changes."""
    environment_modules: str = ""
    """Comma-separated Python modules in your image from which environments (`module:callable`) may come; empty allows none."""
    termination_grace_period_seconds: int = Field(default=30, ge=5)
    """Seconds to finish a rollout after SIGTERM; raise it when one rollout takes longer."""
    resources: Resources = Resources(requests={"cpu": "100m", "memory": "128Mi"}, limits={"memory": "1Gi"})
    """Requests and limits of an actor, environments included."""
    autoscaling: Autoscaling = Autoscaling()
    """Who decides how many actors there are."""


class NetworkPolicies(Values):
    """Who may open connections to the cell's pods; needs a network plugin that enforces policies."""

    enabled: bool = True
    """Make the policies: only the cell reaches Redis and replay, only `apiFrom` reaches control."""
    api_from: tuple[dict[str, JsonValue], ...] = ()
    """Peers that may reach control, as in a NetworkPolicy's `from`; empty lets everybody who has a token."""


class DisruptionBudgets(Values):
    """How many pods a drain may take at a time."""

    enabled: bool = True
    """Make PodDisruptionBudgets: half of the actors, one pod of each other component."""


class Monitors(Values):
    """Objects of the Prometheus operator."""

    enabled: bool = False
    """Make a ServiceMonitor and a PodMonitor; false because they need the operator's definitions in the cluster."""
    interval: str = Field(default="15s", pattern=r"^[0-9]+(ms|s|m)$")
    """How often metrics are scraped; 15 s is Prometheus' usual step."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels by which your Prometheus finds monitors, e.g. `release: prometheus`; none."""


class Dashboard(Values):
    """A Grafana dashboard as a ConfigMap."""

    enabled: bool = False
    """Make the ConfigMap; false because it needs Grafana's sidecar to be seen."""
    labels: dict[str, str] = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """Labels by which Grafana's sidecar finds dashboards; the default is that of the common charts."""


class ChartValues(Values):
    """Values of the chart `rollstream`: one cell."""

    global_: Global = Field(default_factory=Global, alias="global")
    """Values shared with a parent chart."""
    image: Images = Images()
    """Images of the project."""
    auth: Auth = Auth()
    """Tokens of the REST API."""
    redis: Redis = Redis()
    """Redis of the cell."""
    control: Control = Control()
    """The REST API, the scheduler and the scale of actors."""
    replay: Replay = Replay()
    """Replay shards."""
    learner: Learner = Learner()
    """Learners: claim experiments and run their dataflow."""
    actor: Actor = Actor()
    """Actors: step environments, and how many of them there are."""
    experiment: ExperimentSpec | None = None
    """An experiment that is submitted at install, once for its content (a changed one is submitted at upgrade); `{}`: none."""
    extra_env: tuple[dict[str, JsonValue], ...] = ()
    """More environment variables for control, replay, learners and actors, as in a container's `env`; none."""
    network_policy: NetworkPolicies = NetworkPolicies()
    """Who may open connections to the cell's pods."""
    pod_disruption_budget: DisruptionBudgets = DisruptionBudgets()
    """How many pods a drain may take at a time."""
    service_monitor: Monitors = Monitors()
    """Objects of the Prometheus operator."""
    grafana_dashboard: Dashboard = Dashboard()
    """A Grafana dashboard as a ConfigMap."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    """Labels of the nodes for all pods; none."""
    tolerations: tuple[dict[str, JsonValue], ...] = ()
    """Tolerations of all pods; none."""
    affinity: dict[str, JsonValue] = Field(default_factory=dict)
    """Affinity of all pods; none."""

    @field_validator("experiment", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return None if value == {} else value
