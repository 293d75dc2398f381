"""P7: blobs up and down, beside nginx, a raw write with fsync, and azurite with the same client.

Called by run.py as `blobs`. Needs rustc, curl, openssl; fetches nginx (apt, unpacked, not installed), azurite (npm) and
azure-storage-blob (pip) into the cache at first use; a peer that cannot be had is left out and the row says so.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
import venv
from pathlib import Path

GIB, PIECE, COUNT, SMALL = 1 << 30, 4 << 20, 10_000, 10 << 10
WORKSPACE = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/default/providers/Microsoft.MachineLearningServices/workspaces/default"
HERE = Path(__file__).resolve().parent


def link(server):
    """A container and the link that opens it, under the plain and the TLS address."""
    url = f"http://127.0.0.1:{server.port}{WORKSPACE}/codes/bench/versions/1/startPendingUpload"
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, b"{}", headers, method="POST")) as answer:
        uri = json.load(answer)["blobReferenceForConsumption"]["credential"]["sasUri"]
    secure, query = uri.split("?", 1)
    plain = f"http://127.0.0.1:{server.port}/" + secure.split("/", 3)[3]
    return plain, secure, query


class Rss(threading.Thread):
    """The most memory the server had while something ran."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.most, self.over = server, 0, False

    def run(self):
        while not self.over:
            self.most = max(self.most, self.server.rss_kib())
            time.sleep(0.05)


def thin(cache):
    tool, source = cache / "blobs", HERE / "blobs.rs"
    if not tool.exists() or tool.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["rustc", "-O", "--edition", "2024", str(source), "-o", str(tool)], check=True)

    def run(url, query, *args):
        return float(subprocess.run([str(tool), url, query, *map(str, args)], check=True, capture_output=True, text=True).stdout)

    return run


class Nginx:
    """Static files as Debian's nginx serves them: sendfile, two workers."""

    def __init__(self, cache, folder, port):
        root = cache / "nginx" / "root"
        self.program = next((str(p) for p in (root / "usr/sbin/nginx", Path("/usr/sbin/nginx")) if p.exists()), None)
        if not self.program:
            root.parent.mkdir(parents=True, exist_ok=True)
            got = subprocess.run(["apt-get", "download", "nginx", "nginx-common"], cwd=root.parent, capture_output=True)
            for package in root.parent.glob("*.deb") if got.returncode == 0 else []:
                subprocess.run(["dpkg", "-x", str(package), str(root)], check=True)
                package.unlink()
            self.program = str(root / "usr/sbin/nginx") if (root / "usr/sbin/nginx").exists() else None
        self.port, self.process = port, None
        self.conf = Path(folder, "nginx.conf")
        user = "user root;" if os.getuid() == 0 else ""
        self.conf.write_text(
            f"{user} daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/nginx.log;\n"
            "events { worker_connections 512; }\n"
            f"http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; client_body_temp_path {folder}/t1;\n"
            f"proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\n"
            f"server {{ listen 127.0.0.1:{port}; root {folder}/files; }} }}\n")

    def __enter__(self):
        if self.program:
            self.process = subprocess.Popen([self.program, "-c", str(self.conf), "-e", str(self.conf) + ".log"], stderr=subprocess.DEVNULL)
            listening(self.port)
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()


class Azurite:
    """The emulator, from the package registry."""

    def __init__(self, cache, folder, port):
        home = cache / "azurite"
        self.program = home / "node_modules/.bin/azurite-blob"
        if not self.program.exists():
            home.mkdir(parents=True, exist_ok=True)
            try:
                subprocess.run(["npm", "install", "--no-audit", "--no-fund", "azurite"], cwd=home, capture_output=True, timeout=600, check=True)
            except (subprocess.SubprocessError, OSError):
                self.program = None
        self.folder, self.port, self.process = folder, port, None

    def __enter__(self):
        if self.program:
            command = [str(self.program), "--silent", "--skipApiVersionCheck", "--blobPort", str(self.port), "--location", f"{self.folder}/azurite"]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            listening(self.port)
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()


def listening(port):
    for _ in range(400):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens on {port}")


def client(cache):
    """A Python with Azure's blob client in it, or None."""
    given = os.environ.get("PEREGRINE_BENCH_PYTHON")
    if given:
        return given
    folder = cache / "azure-storage-blob"
    python = folder / "bin" / "python"
    if not python.exists():
        try:
            venv.create(folder, with_pip=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", "azure-storage-blob"], check=True, timeout=300)
        except (subprocess.SubprocessError, OSError):
            shutil.rmtree(folder, ignore_errors=True)
            return None
    return str(python)


def curl(url, authority, up=None):
    """Seconds for one gibibyte over TLS."""
    command = ["curl", "-sS", "--fail", "--cacert", authority, "-o", "/dev/null", "-w", "%{time_total}"]
    if up:
        command += ["-T", up, "-H", "x-ms-blob-type: BlockBlob", "-H", "expect:"]
    return float(subprocess.run([*command, url], check=True, capture_output=True, text=True).stdout)


def blobs(Server, cache, rounds, free_port, table, verdict):
    """Interleaved rounds; the best of each, because whatever else the machine does only ever adds time."""
    cache.mkdir(parents=True, exist_ok=True)
    run, python, times = thin(cache), client(cache), {}
    note = lambda name, seconds: times.setdefault(name, []).append(seconds)
    with Server() as server:
        files = Path(server.folder, "files")
        for folder in ("one", "many"):
            (files / folder).mkdir(parents=True)
        raw = tempfile.mkdtemp(dir=server.folder)
        plain, secure, query = link(server)
        authority = f"{server.home}/keys/authority.pem"
        ports = free_port(), free_port()
        watch = Rss(server)
        watch.start()
        with Nginx(cache, server.folder, ports[0]) as nginx, Azurite(cache, server.folder, ports[1]) as azurite:
            run("http://x/", "", "raw-one", GIB >> 20, 1 << 20, 1, files / "one")
            run("http://x/", "", "raw", COUNT, SMALL, 8, files / "many")
            for _ in range(rounds):
                note("up one", run(plain, query, "up", 1, GIB, 1))
                note("raw one", run("http://x/", "", "raw-one", GIB >> 20, 1 << 20, 1, raw))
                note("up blocks", run(f"{plain}/b", query, "blocks", GIB // PIECE, PIECE, 4))
                note("down one", run(plain, query, "down", 1, GIB, 1))
                note("up many", run(f"{plain}/many", query, "up", COUNT, SMALL, 8))
                note("raw many", run("http://x/", "", "raw", COUNT, SMALL, 8, raw))
                note("down many", run(f"{plain}/many", query, "down", COUNT, SMALL, 8))
                if nginx.program:
                    base = f"http://127.0.0.1:{ports[0]}"
                    note("nginx one", run(f"{base}/one", "", "down", 1, GIB, 1))
                    note("nginx many", run(f"{base}/many", "", "down", COUNT, SMALL, 8))
                note("tls up", curl(f"{secure}/tls?{query}", authority, up=str(files / "one" / "0")))
                note("tls down", curl(f"{secure}/tls?{query}", authority))
            peers = [("sdk", f"{plain}?{query}")] + ([("azurite", f"azurite:127.0.0.1:{ports[1]}")] if azurite.program else [])
            for name, where in peers if python else []:
                for way, what in [("up", "one"), ("down", "one"), ("up", "many"), ("down", "many")]:
                    done = subprocess.run([python, str(HERE / "peer_blobs.py"), where, way, what], capture_output=True, text=True, timeout=900)
                    if done.returncode == 0:
                        note(f"{name} {way} {what}", float(done.stdout))
        watch.over = True
        watch.join()
        show(times, watch.most, rounds, table, verdict)


def show(times, most, rounds, table, verdict):
    best = {name: min(seconds) for name, seconds in times.items()}
    size = {"one": GIB / (1 << 20), "many": COUNT}

    def row(label, name, peer, what, unit, goal=None):
        if name not in best:
            return [label, "not measured", "", "", ""]
        ratio = f"{best[peer] / best[name]:.2f}" if peer in best else "-"
        met = verdict(best[peer] / best[name] >= goal) if goal and peer in best else ""
        return [label, f"{size[what] / best[name]:,.0f} {unit}", ratio, f">= {goal:.2f}" if goal else "", met]

    columns = ["what", "Peregrine", "x peer", "goal", ""]
    mib, per = "MiB/s", "files/s"
    table(f"1 GiB and 10,000 x 10 KiB, thin client, plain http (best of {rounds} interleaved rounds)", columns, [
        row("1 GiB up in one request; peer: raw write and fsync", "up one", "raw one", "one", mib, 0.8),
        row("1 GiB up in 256 blocks, 4 connections; the same peer", "up blocks", "raw one", "one", mib, 0.8),
        row("1 GiB down; peer: nginx, sendfile", "down one", "nginx one", "one", mib, 0.8),
        row("10,000 up, 8 connections; peer: raw write and fsync each, 8 threads", "up many", "raw many", "many", per, 0.8),
        row("10,000 down, 8 connections; peer: nginx", "down many", "nginx many", "many", per, 0.8),
        row("1 GiB up over TLS, curl; peer: plain", "tls up", "up one", "one", mib),
        row("1 GiB down over TLS, curl; peer: plain", "tls down", "down one", "one", mib),
    ])
    table("The same with azure-storage-blob; peer: azurite", columns, [
        row("1 GiB up", "sdk up one", "azurite up one", "one", mib),
        row("1 GiB down", "sdk down one", "azurite down one", "one", mib),
        row("10,000 up, 8 threads", "sdk up many", "azurite up many", "many", per),
        row("10,000 down, 8 threads", "sdk down many", "azurite down many", "many", per),
    ])
    table("Memory", ["measure", "Peregrine", "goal", ""], [
        ["most memory of the server throughout (RSS)", f"{most / 1024:.0f} MiB", "< 100 MiB", verdict(most < 100 << 10)],
    ])
