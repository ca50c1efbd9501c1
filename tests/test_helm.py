"""The Helm chart: with the values it comes with it is what conf/kubernetes applies, and a wrong value is refused."""

import hashlib
import json
import re
import runpy
import subprocess
from pathlib import Path
from typing import Any, Final

import jsonschema
import kubernetes_validate
import pytest
import yaml

from dashboards.build import GENERATED, RULES
from tests.command_lines import refused
from tests.dashboards.prometheus_tools import needs_promtool, promtool
from tests.left_out import needs, program
from tests.test_kubernetes import MANIFESTS, OF_OTHERS, STANDBY, VERSIONS, patched

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "conf" / "helm" / "group-monitor"
META: Final[dict[str, Any]] = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
VALUES: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
REHEARSAL: Final = "cronjob.yaml"
ON_REQUEST: Final = {REHEARSAL, "prometheusrule.yaml", "dashboards.yaml"}
"""Templates of what there is only if it is asked for; conf/kubernetes has none of it."""
TEMPLATES: Final = sorted({path.name for path in (CHART / "templates").glob("*.yaml")} - ON_REQUEST)

needs_helm = needs("helm")

_ACTION: Final = re.compile(r"(?:\n[ \t]*)?\{\{-(.*?)\}\}|\{\{(.*?)\}\}", re.DOTALL)


def rendered(name: str, values: dict[str, Any], release: str = "group-monitor") -> Any:
    """A template as Helm renders it, as far as these go: `if`, `with`, `range`, and what `function` knows; as YAML."""
    scope = {
        "Release": {"Name": release, "Namespace": "monitoring"},
        "Chart": {"AppVersion": META["appVersion"]},
        "Values": values,
    }
    text = (CHART / "templates" / name).read_text("utf-8")
    parts, at = [], 0
    # The dash takes the white space before it; Helm's takes all of it, these templates have one line end there.
    for found in _ACTION.finditer(text):
        parts += [text[at : found.start()], ((found[1] or found[2]).strip(),)]
        at = found.end()
    return yaml.safe_load(_block([*parts, text[at:]], scope, scope)[0])


def _block(parts: list[Any], scope: dict[str, Any], dot: Any) -> tuple[str, list[Any]]:
    """What comes before the next `end`, and the parts behind it."""
    out = ""
    while parts:
        part, *parts = parts
        if isinstance(part, str):
            out += part
            continue
        word, _, rest = part[0].partition(" ")
        if word == "end":
            return out, parts
        if word in ("if", "with", "range"):
            value = function(rest, scope, dot)
            each = (value if word == "range" else [value]) if value else []
            texts = [_block(parts, scope, dot if word == "if" else of)[0] for of in each]
            parts = _block(parts, scope, dot if not each or word == "if" else each[0])[1]
            out += "".join(texts)
        else:
            out += str(function(part[0], scope, dot))
    return out, parts


def function(expression: str, scope: dict[str, Any], dot: Any) -> Any:  # noqa: C901 - a case a function of Helm
    """A pipeline of Go's templates."""
    value: Any = None
    for number, step in enumerate(expression.split("|")):
        name, *words = step.split()
        given = [_value(word, scope, dot) for word in words if not word.startswith('"')]
        match name:
            case "toYaml":
                value = yaml.safe_dump(given[0], sort_keys=True).removesuffix("\n")
            case "nindent":
                value = "\n" + "\n".join(" " * given[0] + line for line in str(value).splitlines())
            case "default":
                value = value or given[0]
            case "include":
                assert ['"group-monitor.podMonitor"', "."] == words
                value = scope["Values"]["podMonitor"]["enabled"]  # auto, in a cluster that knows the kind
            case "int64":
                # What `with` leaves out is gone through all the same, and thrown away.
                value = given[0] if isinstance(given[0], int) else 0
            case "quote":
                value = json.dumps(value)
            case "not":
                value = not given[0]
            case "ternary":
                value = given[0] if given[2] else given[1]
            case "sha256sum":
                value = hashlib.sha256(value.encode()).hexdigest()
            case _ if number == 0 and not words:
                value = _value(name, scope, dot)
            case _:
                raise ValueError(f"not known here: {step}")
    return value


def _value(word: str, scope: dict[str, Any], dot: Any) -> Any:
    if word == ".":
        return dot
    if not word.startswith("."):
        return int(word)
    value: Any = scope
    for name in word[1:].split("."):
        value = value[name]
    return value


def with_value(dotted: str, value: Any) -> dict[str, Any]:
    """The values with another one for one of them."""
    values: dict[str, Any] = json.loads(json.dumps(VALUES))
    *path, last = dotted.split("/")
    at = values
    for name in path:
        at = at[name]
    at[last] = value
    return values


@pytest.mark.parametrize("name", TEMPLATES)
def test_it_is_what_kustomize_applies(name: str) -> None:
    """Each manifest, but for the image's tag, and for a sum by which another configuration restarts the pod."""
    found, expected = rendered(name, VALUES), json.loads(json.dumps(MANIFESTS[name]))
    if name == "statefulset.yaml":
        assert 64 == len(found["spec"]["template"]["metadata"].pop("annotations")["group-monitor/config"])
        expected["spec"]["template"]["spec"]["containers"][0]["image"] += f":{META['appVersion']}"
    if name == "configmap.yaml":
        for manifest in (found, expected):
            manifest["data"]["monitor.yaml"] = yaml.safe_load(manifest["data"]["monitor.yaml"])

    assert expected == found


def test_every_manifest_is_in_it() -> None:
    """None is forgotten, and versions are the release's."""
    (image,) = MANIFESTS["kustomization.yaml"]["images"]

    assert sorted(MANIFESTS.keys() - {"kustomization.yaml"}) == TEMPLATES
    assert [image["newTag"]] * 2 == [META["version"], META["appVersion"]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted({*TEMPLATES} - OF_OTHERS))
def test_another_release_with_other_values_is_of_the_schema(name: str, version: str) -> None:
    """Two of them fit beside each other in one namespace: name and selector are the release's."""
    values = with_value("env", [{"name": "KAFKA_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "k", "key": "p"}}}])
    values["storage"]["className"] = "fast"
    values["networkPolicy"]["kafkaPorts"] = [9092, 9093]
    values["image"]["tag"] = "1.2.3"
    made = rendered(name, values, release="east")

    kubernetes_validate.validate(made, version, strict=True)
    assert "east" == made["metadata"]["name"]
    text = json.dumps(made)
    assert '"app.kubernetes.io/name": "group-monitor"' not in text
    if name == "statefulset.yaml":
        assert '"image": "group-monitor:1.2.3"' in text
        assert "KAFKA_PASSWORD" in text
        assert '"storageClassName": "fast"' in text
    if name == "networkpolicy.yaml":
        assert [9092, 9093] == [port["port"] for port in made["spec"]["egress"][-1]["ports"]]


@pytest.mark.parametrize("name", ["service.yaml", "statefulset.yaml"])
def test_with_a_standby_it_is_what_kustomize_applies(name: str) -> None:
    """The service leads to the active monitor alone, and no probe ends the other."""
    made, expected = rendered(name, with_value("standby", True)), patched(name, STANDBY)
    if name == "statefulset.yaml":
        del made["spec"]["template"]["metadata"]["annotations"]
        expected["spec"]["template"]["spec"]["containers"][0]["image"] += f":{META['appVersion']}"

    assert expected == made


@pytest.mark.parametrize(
    ("switch", "name"), [("networkPolicy", "networkpolicy.yaml"), ("podMonitor", "podmonitor.yaml")]
)
def test_what_is_switched_off_is_not_there(switch: str, name: str) -> None:
    """A cluster without the Prometheus operator takes the rest."""
    assert rendered(name, VALUES)
    assert rendered(name, with_value(f"{switch}/enabled", False)) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rehearsal_of_brokers_is_there_if_it_is_asked_for(version: str) -> None:
    """A job with the monitor's image, configuration and variables, which the service does not lead to."""
    values = with_value("rehearsal/enabled", True)
    values["rehearsal"]["releases"] = ["4.0.2", "4.3.1"]
    values["env"] = [{"name": "KAFKA_PASSWORD", "value": "p"}]

    made = rendered(REHEARSAL, values, release="east")

    kubernetes_validate.validate(made, version, strict=True)
    assert rendered(REHEARSAL, VALUES) is None
    pod = made["spec"]["jobTemplate"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert "" == refused(container["args"])
    assert ["--release=4.0.2", "--release=4.3.1"] == container["args"][-2:]
    assert {"name": "KAFKA_PASSWORD", "value": "p"} in container["env"]
    assert "east-rehearsal" == pod["metadata"]["labels"]["app.kubernetes.io/name"]


@pytest.mark.parametrize("version", VERSIONS)
def test_with_a_secret_of_tls_the_token_does_not_go_in_clear(version: str) -> None:
    """Page, API and metrics speak TLS by the secret's files, Prometheus checks the name; probes go on without."""
    values = with_value("tls/secretName", "monitor-tls")
    made, scraper = rendered("statefulset.yaml", values), rendered("podmonitor.yaml", values)
    kubernetes_validate.validate(made, version, strict=True)
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {of["name"]: of for of in container["volumeMounts"]}
    variables = {of["name"]: of.get("value") for of in container["env"]}
    (endpoint,) = scraper["spec"]["podMetricsEndpoints"]

    (volume,) = [of for of in pod["volumes"] if of["name"] == "tls"]
    assert ({"secretName": "monitor-tls"}, True) == (volume["secret"], mounts["tls"]["readOnly"])
    directory = mounts["tls"]["mountPath"]
    assert f"{directory}/tls.crt" == variables["GROUP_MONITOR__HTTP__TLS_CERTIFICATE_FILE"]
    assert f"{directory}/tls.key" == variables["GROUP_MONITOR__HTTP__TLS_KEY_FILE"]
    probes = [container[of]["httpGet"] for of in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert [("probes", None)] * 3 == [(of["port"], of.get("scheme")) for of in probes]
    authority = {"secret": {"name": "monitor-tls", "key": "ca.crt"}}
    checked = {"serverName": "group-monitor.monitoring.svc", "ca": authority}
    assert ("https", checked) == (endpoint["scheme"], endpoint["tlsConfig"])


@pytest.mark.parametrize(
    ("serverName", "caKey", "expected"),
    [
        ("monitor.example", "", {"serverName": "monitor.example"}),
        (
            "monitor.example",
            "root.pem",
            {"serverName": "monitor.example", "ca": {"secret": {"name": "monitor-tls", "key": "root.pem"}}},
        ),
    ],
)
def test_prometheus_checks_the_certificate_as_it_is_told(serverName: str, caKey: str, expected: Any) -> None:  # noqa: N803 - as in the values
    """By another name, by another authority, or by those it knows."""
    values = with_value("tls", {"secretName": "monitor-tls", "serverName": serverName, "caKey": caKey})
    (endpoint,) = rendered("podmonitor.yaml", values)["spec"]["podMetricsEndpoints"]

    assert expected == endpoint["tlsConfig"]


def test_what_is_made_for_the_chart_is_current() -> None:
    """Schema, rules and limits are made from declarations."""
    made = runpy.run_path(str(ROOT / "release" / "helm_schema.py"))["files"]()

    assert [] == [file.name for file, text in made.items() if file.read_text("utf-8") != text]
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def of_chart(name: str) -> Any:
    return json.loads((CHART / "files" / name).read_text("utf-8"))


def test_with_every_limit_put_in_the_rules_are_the_committed_ones() -> None:
    """As the template does: each form of each name is replaced, and no text of them ends a text of JSON."""
    text = (CHART / "files" / "rules.json").read_text("utf-8")
    for name, forms in of_chart("limits.json").items():
        for form in ("duration", "words", "reason"):
            assert json.dumps(forms[form], ensure_ascii=False) == f'"{forms[form]}"'
            text = text.replace(f"%{name}:{form}%", forms[form])
        text = text.replace(f"%{name}%", str(forms["value"]))

    assert yaml.safe_load((GENERATED / RULES).read_text("utf-8")) == json.loads(text)


def test_boards_of_the_chart_are_the_generated_ones() -> None:
    """Each is in it, under its name, byte for byte."""
    found = {path.name: path.read_bytes() for path in (CHART / "dashboards").iterdir()}

    assert {path.name: path.read_bytes() for path in GENERATED.glob("*.json")} == found


def test_no_user_is_named_and_a_group_only_if_wanted() -> None:
    """OpenShift gives ids of its own, a large one too; without fsGroup its policy is not there either."""
    with_group = rendered("statefulset.yaml", with_value("fsGroup", 1_000_650_000))
    without = rendered("statefulset.yaml", with_value("fsGroup", None))
    contexts = [made["spec"]["template"]["spec"]["securityContext"] for made in (with_group, without)]
    rehearsal = with_value("rehearsal/enabled", True)
    for group in (10_001, None):
        rehearsal["fsGroup"] = group
        job = rendered(REHEARSAL, rehearsal)["spec"]["jobTemplate"]
        contexts.append(job["spec"]["template"]["spec"]["securityContext"])

    assert 1_000_650_000 == contexts[0]["fsGroup"]
    assert {"runAsNonRoot", "seccompProfile"} == contexts[1].keys() == contexts[3].keys()
    assert {"runAsNonRoot", "seccompProfile", "fsGroup"} == contexts[2].keys()


@pytest.mark.parametrize(
    ("dotted", "value", "expected"),
    [
        ("config/http/port", 9465, True),
        ("config/http/port", "high", False),
        ("config/htpp", {}, False),
        ("config/kafka/bootstrap_servers", ["a:9092"], True),
        ("image/tag", 1.2, False),
        ("podMonitor/interval", "15", False),
        ("networkPolicy/kafkaPorts", [], False),
        ("storage/sise", "1Gi", False),
        ("standby", "yes", False),
        ("tls/secretName", "monitor-tls", True),
        ("tls/secretName", None, False),
        ("config/http/probe_port", 9466, True),
        ("global", {}, True),
        ("podMonitor/enabled", True, True),
        ("podMonitor/enabled", "yes", False),
        ("podMonitor/labels", {"release": "prometheus"}, True),
        ("prometheusRule/limits", {"rounds_lost": 10}, True),
        ("prometheusRule/limits", {"rounds_lst": 10}, False),
        ("prometheusRule/limits", {"storm_rebalances": 50}, False),
        ("prometheusRule/limits", {"rounds_lost": 0}, False),
        ("dashboards/annotations", {"grafana_folder": "Kafka"}, True),
        ("fsGroup", None, True),
        ("fsGroup", "root", False),
    ],
)
def test_a_wrong_value_is_refused(dotted: str, value: Any, expected: bool) -> None:
    """By the schema that Helm asks before it applies anything; the values it comes with are taken."""
    validator = jsonschema.Draft7Validator(SCHEMA)

    assert validator.is_valid(VALUES)
    assert expected == validator.is_valid(with_value(dotted, value))


def by_helm(*arguments: str) -> list[Any]:
    """What `helm template` makes of the chart, in its order."""
    done = subprocess.run(  # noqa: S603 - our own words
        [program("helm") or "helm", "template", "group-monitor", str(CHART), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return [made for made in yaml.safe_load_all(done.stdout) if made]


OPERATOR: Final = ("--api-versions", "monitoring.coreos.com/v1/PodMonitor")


@needs_helm
def test_helm_renders_the_same() -> None:
    """What the tests above take for Helm's own rendering is it."""
    found = {made["kind"]: made for made in by_helm(*OPERATOR)}

    for name in TEMPLATES:
        expected = rendered(name, VALUES)
        if name == "statefulset.yaml":
            # Of the same configuration, whose text Helm writes in its own way.
            for manifest in (found["StatefulSet"], expected):
                del manifest["spec"]["template"]["metadata"]["annotations"]
        if name == "configmap.yaml":
            for manifest in (found["ConfigMap"], expected):
                manifest["data"]["monitor.yaml"] = yaml.safe_load(manifest["data"]["monitor.yaml"])
        assert expected == found[expected["kind"]], name
    assert len(TEMPLATES) == len(found)


@needs_helm
@pytest.mark.parametrize(
    ("arguments", "is_there"),
    [
        ((), False),
        (OPERATOR, True),
        (("--set", "podMonitor.enabled=true"), True),
        (("--set", "podMonitor.enabled=false", *OPERATOR), False),
    ],
)
def test_a_pod_monitor_is_there_where_the_cluster_knows_the_kind(arguments: tuple[str, ...], is_there: bool) -> None:
    """Or where it was said."""
    assert is_there == any(made["kind"] == "PodMonitor" for made in by_helm(*arguments))


@needs_helm
@needs_promtool
@pytest.mark.parametrize("limits", [(), ("--set", "prometheusRule.limits.commit_window_seconds=1200")])
def test_prometheus_accepts_rules_that_helm_renders(limits: tuple[str, ...], tmp_path: Path) -> None:
    """What the operator hands on to it: templates of alerts are as they were, and queries are whole."""
    rendered_by_helm = by_helm("--set", "prometheusRule.enabled=true", *limits)
    (rule,) = [made for made in rendered_by_helm if made["kind"] == "PrometheusRule"]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(rule["spec"]), "utf-8")

    assert "" == promtool("check", "rules", str(file))


@needs_helm
def test_helm_puts_limits_into_rules() -> None:
    """By default they are the committed ones; a limit that is said is in query, sentence and reason."""
    labelled = ("--set", "prometheusRule.enabled=true", "--set", "prometheusRule.labels.release=kps")
    (usual,) = [made for made in by_helm(*labelled) if made["kind"] == "PrometheusRule"]
    limited = by_helm(*labelled, "--set", "prometheusRule.limits.commit_window_seconds=1200")
    (made,) = [made for made in limited if made["kind"] == "PrometheusRule"]

    assert yaml.safe_load((GENERATED / RULES).read_text("utf-8")) == usual["spec"]
    assert "kps" == usual["metadata"]["labels"]["release"]
    text = json.dumps(made["spec"])
    assert all(of in text for of in ("[1200s]", "nothing in 1200 seconds", "was set (commit_window_seconds)"))
    assert "%" not in re.sub(r"printf `[^`]*`", "", text)


@needs_helm
def test_helm_makes_a_config_map_of_each_board() -> None:
    """Byte for byte, with what the sidecar selects by; each is small enough for `kubectl apply`."""
    made = [of for of in by_helm("--set", "dashboards.enabled=true") if "grafana_dashboard" in of["metadata"]["labels"]]
    found = {name: text for of in made for name, text in of["data"].items()}

    assert {path.name: path.read_text("utf-8") for path in GENERATED.glob("*.json")} == found
    assert all(len(json.dumps(of)) < 256 * 1024 for of in made)
    assert len(made) == len({of["metadata"]["name"] for of in made})
