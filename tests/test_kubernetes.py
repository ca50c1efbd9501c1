"""The manifests of conf/kubernetes: the API would take them, and they fit the image, the program and each other."""

import json
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from dashboards.build import GENERATED, KUSTOMIZATION, RULES
from streaming.config.loading import load
from streaming.web.access import OPEN_PATHS
from tests.command_lines import refused

ROOT: Final = Path(__file__).resolve().parent.parent
DIRECTORY: Final = ROOT / "conf" / "kubernetes"
MANIFESTS: Final[dict[str, dict[str, Any]]] = {
    path.name: yaml.safe_load(path.read_text("utf-8")) for path in sorted(DIRECTORY.glob("*.yaml"))
}
OF_OTHERS: Final = {"kustomization.yaml", "podmonitor.yaml"}
"""Not Kubernetes' own kinds: they have no schema here, and are looked at key by key."""
VERSIONS: Final = ("1.28", "1.34")
"""An old release in use and the newest but few: what both take, those between them take."""

STATEFULSET: Final = MANIFESTS["statefulset.yaml"]
POD: Final = STATEFULSET["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
LABELS: Final = {"app.kubernetes.io/name": "group-monitor"}
ENVIRONMENT: Final[dict[str, Any]] = {of["name"]: of for of in CONTAINER["env"]}
DOCKERFILE: Final = (ROOT / "Dockerfile").read_text("utf-8")


STANDBY, TLS = (
    yaml.safe_load((DIRECTORY.parent / overlay / "kustomization.yaml").read_text("utf-8"))
    for overlay in ("kubernetes-standby", "kubernetes-tls")
)


def patched(name: str, *overlays: dict[str, Any]) -> dict[str, Any]:
    """A manifest as overlays leave it, one after the other: JSON patches, of the operations that they use."""
    made: dict[str, Any] = json.loads(json.dumps(MANIFESTS[name]))
    patches = [of["patch"] for overlay in overlays for of in overlay["patches"] if of["target"]["kind"] == made["kind"]]
    for change in [change for patch in patches for change in yaml.safe_load(patch)]:
        *path, last = change["path"].removeprefix("/").split("/")
        at: Any = made
        for key in path:
            at = at[int(key) if isinstance(at, list) else key]
        match change["op"]:
            case "add" if isinstance(at, list):
                assert last == "-"
                at.append(change["value"])
            case "add" | "replace" as op:
                assert (op == "add") == (last not in at)
                at[last] = change["value"]
            case "remove":
                del at[last]
            case _:
                raise ValueError(f"not known here: {change}")
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_on_openshift_no_id_is_named(version: str) -> None:
    """The platform gives user and group; that it is not root is said all the same."""
    overlay = yaml.safe_load((DIRECTORY.parent / "kubernetes-openshift" / "kustomization.yaml").read_text("utf-8"))
    made = patched("statefulset.yaml", overlay)
    kubernetes_validate.validate(made, version, strict=True)

    assert ["../kubernetes"] == overlay["resources"]
    context = made["spec"]["template"]["spec"]["securityContext"]
    assert {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} == context


def test_rules_and_boards_are_an_overlay() -> None:
    """It has the committed rules as the operator reads them, and a ConfigMap for each committed board."""
    folder = DIRECTORY.parent / "kubernetes-prometheus"
    overlay = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    rule = yaml.safe_load((folder / "prometheusrule.yaml").read_text("utf-8"))
    boards = yaml.safe_load((GENERATED / KUSTOMIZATION).read_text("utf-8"))

    assert [*overlay["resources"]] == ["../kubernetes", "prometheusrule.yaml", "../../dashboards/generated"]
    assert yaml.safe_load((GENERATED / RULES).read_text("utf-8")) == rule["spec"]
    listed = [file for each in boards["configMapGenerator"] for file in each["files"]]
    assert sorted(path.name for path in GENERATED.glob("*.json")) == listed


def test_page_and_gates_of_one_monitor_stay_within_reach() -> None:
    """While it is not ready they say what they cannot tell, and no other process could."""
    assert 1 == STATEFULSET["spec"]["replicas"]
    assert MANIFESTS["service.yaml"]["spec"]["publishNotReadyAddresses"] is True


@pytest.mark.parametrize("version", VERSIONS)
def test_with_a_standby_the_service_leads_to_the_active_monitor(version: str) -> None:
    """Only what is ready is published; no probe ends the standby, which opens no port, and no pod waits for it."""
    service, pods = patched("service.yaml", STANDBY), patched("statefulset.yaml", STANDBY)
    (container,) = pods["spec"]["template"]["spec"]["containers"]
    for manifest in (service, pods):
        kubernetes_validate.validate(manifest, version, strict=True)

    assert "publishNotReadyAddresses" not in service["spec"]
    assert (2, "Parallel", "OnDelete") == (
        pods["spec"]["replicas"],
        pods["spec"]["podManagementPolicy"],
        pods["spec"]["updateStrategy"]["type"],
    )
    assert "" == refused(container["args"])
    assert "--standby" in container["args"]
    assert {"readinessProbe"} == {key for key in container if key.endswith("Probe")}
    assert ["../kubernetes"] == STANDBY["resources"]


@pytest.mark.parametrize("before", [(), (STANDBY,)], ids=["alone", "with a standby"])
def test_with_tls_the_token_does_not_go_in_clear(before: tuple[dict[str, Any], ...]) -> None:
    """Page, API and metrics speak TLS by the secret's files, Prometheus checks the name; probes go on without."""
    pods, scraper = patched("statefulset.yaml", *before, TLS), patched("podmonitor.yaml", *before, TLS)
    for version in VERSIONS:
        kubernetes_validate.validate(pods, version, strict=True)
    pod = pods["spec"]["template"]["spec"]
    (container,), (endpoint,) = pod["containers"], scraper["spec"]["podMetricsEndpoints"]
    (mount,), (volume,) = (
        [of for of in each if of["name"] == "tls"] for each in (container["volumeMounts"], pod["volumes"])
    )
    variables = {of["name"]: of.get("value", "secret-of-the-cluster") for of in container["env"]}
    files = {name: variables[f"GROUP_MONITOR__HTTP__TLS_{name}_FILE"] for name in ("CERTIFICATE", "KEY")}
    asked = {of["port"]: of.get("scheme") for of in (container[key]["httpGet"] for key in container if "Probe" in key)}
    namespace, name = MANIFESTS["kustomization.yaml"]["namespace"], MANIFESTS["service.yaml"]["metadata"]["name"]
    authority = {"secret": {"name": volume["secret"]["secretName"], "key": "ca.crt"}}

    assert {"CERTIFICATE": f"{mount['mountPath']}/tls.crt", "KEY": f"{mount['mountPath']}/tls.key"} == files
    assert mount["readOnly"]
    assert {"probes": None} == asked
    checked = {"serverName": f"{name}.{namespace}.svc", "ca": authority}
    assert ("https", checked) == (endpoint["scheme"], endpoint["tlsConfig"])
    assert endpoint["authorization"] == MANIFESTS["podmonitor.yaml"]["spec"]["podMetricsEndpoints"][0]["authorization"]
    assert ["../kubernetes"] == TLS["resources"]


@pytest.mark.parametrize("name", sorted(MANIFESTS.keys() - OF_OTHERS))
@pytest.mark.parametrize("version", VERSIONS)
def test_manifest_is_of_its_schema(name: str, version: str) -> None:
    """Nothing is missing, misspelt, or of another type, in an old release and in a new one."""
    kubernetes_validate.validate(MANIFESTS[name], version, strict=True)


def test_a_misspelt_key_is_found() -> None:
    """The check above can fail."""
    broken = json.loads(json.dumps(STATEFULSET))
    broken["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_all_of_them_are_applied_under_one_label() -> None:
    """The list of resources is the folder; every selector is the pods'."""
    listed = MANIFESTS["kustomization.yaml"]
    selectors = [
        STATEFULSET["spec"]["selector"]["matchLabels"],
        MANIFESTS["service.yaml"]["spec"]["selector"],
        MANIFESTS["networkpolicy.yaml"]["spec"]["podSelector"]["matchLabels"],
        MANIFESTS["poddisruptionbudget.yaml"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["podmonitor.yaml"]["spec"]["selector"]["matchLabels"],
    ]

    assert {"apiVersion", "kind", "namespace", "resources", "images"} == listed.keys()
    assert MANIFESTS.keys() - {"kustomization.yaml"} == {*listed["resources"]}
    assert [LABELS] * 5 == selectors
    assert LABELS == STATEFULSET["spec"]["template"]["metadata"]["labels"]
    assert {"group-monitor"} == {
        manifest["metadata"]["name"] for of, manifest in MANIFESTS.items() if of != "kustomization.yaml"
    }


def test_image_is_the_one_that_is_built_with_a_version() -> None:
    """Never the latest: the tag is the release's. The user is the image's, or whom the platform gives."""
    (image,) = MANIFESTS["kustomization.yaml"]["images"]
    released = (ROOT / "pyproject.toml").read_text("utf-8").partition('\nversion = "')[2].partition('"')[0]

    assert CONTAINER["image"] == image["name"]
    assert released == image["newTag"]
    assert f"\nUSER {POD['securityContext']['fsGroup']}\n" in DOCKERFILE
    assert set() == {"runAsUser", "runAsGroup"} & {*POD["securityContext"], *CONTAINER["securityContext"]}


def test_command_and_configuration_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program takes its arguments, and the configuration with the variables that the pod sets."""
    (source,) = MANIFESTS["configmap.yaml"]["data"].items()
    mounts = {of["name"]: of["mountPath"] for of in CONTAINER["volumeMounts"]}
    file = tmp_path / source[0]
    file.write_text(source[1], "utf-8")
    variables = {name: of.get("value", "secret-of-the-cluster") for name, of in ENVIRONMENT.items()}
    found = load(file, {name: text for name, text in variables.items() if name.startswith("GROUP_MONITOR__")})

    assert "" == refused(CONTAINER["args"])
    assert f"{mounts['config']}/{source[0]}" == CONTAINER["args"][-1]
    assert mounts["state"] == str(found.state.dir)
    assert found.http.requires_auth
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert {"http": found.http.port, "probes": found.http.probe_port} == ports


def test_what_is_mounted_is_there() -> None:
    """Every mount has its volume or claim, and every volume is mounted."""
    volumes = [of["name"] for of in POD["volumes"]]
    claims = [of["metadata"]["name"] for of in STATEFULSET["spec"]["volumeClaimTemplates"]]

    assert sorted([*volumes, *claims]) == sorted(of["name"] for of in CONTAINER["volumeMounts"])
    assert ENVIRONMENT["SPARK_LOCAL_DIRS"]["value"] in {of["mountPath"] for of in CONTAINER["volumeMounts"]}


def test_secret_is_referred_to_and_never_written_down() -> None:
    """The token comes from a secret, the same for the pod and for who scrapes it, and no manifest holds one."""
    asked = ENVIRONMENT["GROUP_MONITOR__HTTP__TOKEN"]["valueFrom"]["secretKeyRef"]
    (endpoint,) = MANIFESTS["podmonitor.yaml"]["spec"]["podMetricsEndpoints"]

    assert asked == endpoint["authorization"]["credentials"]
    assert "Secret" not in {manifest["kind"] for manifest in MANIFESTS.values()}
    assert f"generic {asked['name']} --from-literal={asked['key']}=" in (DIRECTORY / "kustomization.yaml").read_text(
        "utf-8"
    )


def test_ports_are_called_by_one_name() -> None:
    """Service, policy and scraper mean the container's port; probes ask at one that is opened to no one else."""
    port, of_probes = (of["name"] for of in CONTAINER["ports"])
    probes = {of: CONTAINER[of]["httpGet"] for of in ("startupProbe", "livenessProbe", "readinessProbe")}
    (served,) = MANIFESTS["service.yaml"]["spec"]["ports"]
    (let_in,) = MANIFESTS["networkpolicy.yaml"]["spec"]["ingress"][0]["ports"]
    (scraped,) = MANIFESTS["podmonitor.yaml"]["spec"]["podMetricsEndpoints"]

    assert {port} == {served["targetPort"], let_in["port"], scraped["port"]}
    assert {of_probes} == {of["port"] for of in probes.values()}
    assert ("/healthz", "/healthz", "/ready") == tuple(of["path"] for of in probes.values())
    assert {*OPEN_PATHS} >= {of["path"] for of in probes.values()}


def test_it_may_do_nothing_it_need_not() -> None:
    """Not root, no privilege to be had, a root file system it cannot write, no token of Kubernetes."""
    pod, container = POD["securityContext"], CONTAINER["securityContext"]

    assert (True, "RuntimeDefault") == (pod["runAsNonRoot"], pod["seccompProfile"]["type"])
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == container
    assert not POD["automountServiceAccountToken"]
    assert not MANIFESTS["serviceaccount.yaml"]["automountServiceAccountToken"]
    assert {"Ingress", "Egress"} == {*MANIFESTS["networkpolicy.yaml"]["spec"]["policyTypes"]}


def test_it_may_reach_kafka_where_it_is_said_to_be() -> None:
    """The policy lets out to the port of the configured brokers."""
    configured = yaml.safe_load(MANIFESTS["configmap.yaml"]["data"]["monitor.yaml"])["kafka"]["bootstrap_servers"]
    out = [port["port"] for rule in MANIFESTS["networkpolicy.yaml"]["spec"]["egress"] for port in rule["ports"]]

    assert int(configured.rpartition(":")[2]) in out


def test_memory_holds_the_heap_twice() -> None:
    """What the pod asks for is more than the heap, for what is beside it."""
    heap = yaml.safe_load(MANIFESTS["configmap.yaml"]["data"]["monitor.yaml"])["spark"]["driver_memory"]
    asked, most = (CONTAINER["resources"][of]["memory"] for of in ("requests", "limits"))

    assert int(heap[:-1]) < int(asked.removesuffix("Gi")) <= int(most.removesuffix("Gi"))
    assert int(most.removesuffix("Gi")) >= 2 * int(heap[:-1])
