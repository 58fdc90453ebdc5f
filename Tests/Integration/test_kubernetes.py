"""The Kubernetes manifests: what they say about each other, about the image and about the configuration in them."""

import re
import shutil
import subprocess

import pytest
import yaml

from harness.proxy import BINARY, ROOT, Portcullis, free_port

FOLDER = ROOT / "deploy/kubernetes"


def objects() -> dict[str, dict]:
    """Every object, by kind, of the files that the kustomization lists."""
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(
        path.name for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
    found = [yaml.safe_load((FOLDER / name).read_text()) for name in listed]
    return {item["kind"]: item for item in found}


@pytest.fixture
def pod() -> dict:
    return objects()["Deployment"]["spec"]["template"]["spec"]


@pytest.fixture
def container(pod) -> dict:
    (container,) = pod["containers"]
    return container


@pytest.fixture
def configuration() -> str:
    return objects()["ConfigMap"]["data"]["proxy.conf"]


def seconds(configuration: str, key: str) -> float:
    return float(re.search(rf'{key} = "(\d+)s"', configuration)[1])


def check(text: str, tmp_path) -> subprocess.CompletedProcess:
    path = tmp_path / "proxy.conf"
    path.write_text(text)
    return subprocess.run([BINARY, "check", "-c", path], capture_output=True, text=True, timeout=30)


def test_the_configuration_is_good(configuration, tmp_path):
    done = check(configuration, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "everything" in done.stdout


def test_what_the_configuration_offers_in_comments_is_good_too(configuration, tmp_path):
    secret = tmp_path / "redis-password"
    secret.write_text("secret\n")
    whole, count = re.subn(r"(?m)^#(?=\[|\w+ = )", "", configuration)
    assert count >= 5
    whole = whole.replace("/run/secrets/portcullis/redis-password", str(secret))
    done = check(whole, tmp_path)
    assert done.returncode == 0, done.stderr


def test_O3_the_grace_period_is_longer_than_sleep_and_drain(pod, container, configuration):
    sleep = float(container["lifecycle"]["preStop"]["exec"]["command"][-1])
    drain = seconds(configuration, "drain_timeout")
    assert pod["terminationGracePeriodSeconds"] >= sleep + drain + 5
    # Long enough for a pod that is not ready any more to be noticed.
    assert sleep >= 5


def test_O6_liveness_does_not_ask_for_keys_and_readiness_does(container):
    paths = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in paths.items()} == {
        "startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert {probe["port"] for probe in paths.values()} == {"admin"}


def test_O7_the_service_has_the_listener_and_not_the_admin_port(container, configuration):
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    admin, public = configuration.split("[[listener]]")
    assert f':{ports["admin"]}"' in admin and f':{ports["http"]}"' in public
    assert [port["targetPort"] for port in objects()["Service"]["spec"]["ports"]] == ["http"]
    everybody, monitoring = objects()["NetworkPolicy"]["spec"]["ingress"]
    assert [port["port"] for port in everybody["ports"]] == ["http"]
    assert [port["port"] for port in monitoring["ports"]] == ["admin"] and monitoring["from"]


def test_O9_the_container_has_no_more_than_it_needs(pod, container):
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    # The image's own user owns the only folder that is written to.
    user = re.search(r"^USER (\d+):(\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (int(user[1]), int(user[2]))


def test_everything_that_is_written_to_is_a_volume(pod, container, configuration):
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    state = re.search(r'state_directory = "(.*)"', configuration)[1]
    assert not mounts[state].get("readOnly")
    assert "subPath" not in mounts["/etc/portcullis"]
    assert {mount["name"] for mount in mounts.values()} == {volume["name"] for volume in pod["volumes"]}
    assert container["args"] == ["run", "-c", "/etc/portcullis/proxy.conf"]


def test_every_selector_finds_the_pods():
    found = objects()
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"].items() <= labels.items()
    for kind, key in (("Deployment", "selector"), ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        assert found[kind]["spec"][key]["matchLabels"].items() <= labels.items()
    assert found["Deployment"]["spec"]["replicas"] > found["PodDisruptionBudget"]["spec"]["maxUnavailable"]


def test_kustomize_takes_them():
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    kinds = {item["kind"] for item in yaml.safe_load_all(done.stdout)}
    assert kinds == {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}


def test_the_configuration_of_the_pod_serves(configuration, tmp_path, key_file, origin):
    """The real program with the very file, but for what is not on this machine."""
    port, admin_port = free_port(), free_port()
    text = configuration
    for old, new in (
            ("0.0.0.0:8080", f"127.0.0.1:{port}"), ("0.0.0.0:9090", f"127.0.0.1:{admin_port}"),
            ("/var/lib/portcullis", str(tmp_path)), ("api.default.svc.cluster.local:8080", f"127.0.0.1:{origin.port}"),
            ('id = "my-app"', f'id = "my-app"\njwks = "{key_file}"')):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    proxy = Portcullis(tmp_path, text, port=port, admin_port=admin_port)
    try:
        proxy.wait_until_ready("/readyz")
        assert proxy.ask("GET", "/anything").status == 200
        assert origin.last().get("x-appcheck-verdict") == "missing"
        proxy.stop()
    finally:
        proxy.kill()
