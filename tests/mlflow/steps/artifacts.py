"""Files of a run: logged, listed, read back, streamed through the server's own artifact routes."""

import hashlib
from pathlib import Path

import mlflow


def steps(book, at):
    client, folder = at.client, at.folder
    exp = book("artifact/experiment", client.create_experiment, f"{at.p}.art", called="exp art")
    run = book("artifact/run", lambda: client.create_run(exp, start_time=1, run_name="art").info.run_id, called="run art")
    source = plant(folder)
    book("artifact/list nothing", client.list_artifacts, run)
    book("artifact/log file", client.log_artifact, run, source / "one.txt")
    book("artifact/log file under", client.log_artifact, run, source / "one.txt", "deep/er")
    book("artifact/log folder", client.log_artifacts, run, source)
    book("artifact/log folder under", client.log_artifacts, run, source, "tree")
    book("artifact/log text", client.log_text, run, "text of mine", "texts/a.txt")
    book("artifact/log text again", client.log_text, run, "text of mine, longer", "texts/a.txt")
    book("artifact/log dict", client.log_dict, run, {"a": [1, 2]}, "d.json")
    book("artifact/log yaml", client.log_dict, run, {"a": [1, 2]}, "d.yml")
    book("artifact/log empty file", client.log_text, run, "", "empty.txt")
    for name in ["with space.txt", "ünï.txt", "per%cent.txt", "hash#.txt", "plus+.txt", "q?.txt"]:
        book(f"artifact/log {name}", client.log_text, run, name, f"names/{name}")
    book("artifact/list names", lambda: sorted(f.path for f in client.list_artifacts(run, "names")))
    for name in ["with space.txt", "ünï.txt", "plus+.txt"]:
        book(f"artifact/read {name}", lambda: Path(client.download_artifacts(run, f"names/{name}")).read_text())
    for path in [None, "", "tree", "tree/sub", "deep", "texts", "none", "one.txt", "tree/", "../", "/etc", "texts/../tree"]:
        book(f"artifact/list {path}", client.list_artifacts, run, path)
    book("artifact/download file", lambda: Path(client.download_artifacts(run, "texts/a.txt")).read_text())
    book("artifact/download folder", lambda: listing(Path(client.download_artifacts(run, "tree"))))
    book("artifact/download all", lambda: len(listing(Path(client.download_artifacts(run, "")))))
    book("artifact/download empty", lambda: Path(client.download_artifacts(run, "empty.txt")).read_bytes())
    book("artifact/download none", lambda: client.download_artifacts(run, "none.txt"))
    book("artifact/download by run uri", lambda: Path(mlflow.artifacts.download_artifacts(f"runs:/{run}/texts/a.txt")).read_text())
    book("artifact/load text", lambda: mlflow.artifacts.load_text(f"runs:/{run}/texts/a.txt"))
    book("artifact/load dict", lambda: mlflow.artifacts.load_dict(f"runs:/{run}/d.json"))
    book("artifact/list by uri", lambda: sorted(f.path for f in mlflow.artifacts.list_artifacts(run_id=run, artifact_path="tree")))
    book("artifact/large file", lambda: big(client, run, folder))
    book("artifact/of unknown run", client.list_artifacts, "0" * 32)
    book("artifact/log to unknown run", client.log_text, "0" * 32, "x", "x.txt")
    book("artifact/log unknown file", client.log_artifact, run, "/no/such/file")
    routes(book, exp, run)
    removal(book, client, run)


def plant(folder):
    source = folder / "source"
    (source / "sub" / "more").mkdir(parents=True)
    (source / "one.txt").write_text("one")
    (source / "sub" / "two.bin").write_bytes(bytes(range(256)) * 40)
    (source / "sub" / "more" / "three.csv").write_text("a,b\n1,2\n")
    return source


def listing(path):
    return sorted([str(f.relative_to(path)), hashlib.sha256(f.read_bytes()).hexdigest()[:12]] for f in path.rglob("*") if f.is_file())


def big(client, run, folder):
    file = folder / "big.bin"
    file.write_bytes(b"0123456789abcdef" * (1 << 20))
    client.log_artifact(run, file, "large")
    size = client.list_artifacts(run, "large")[0].file_size
    back = hashlib.sha256(Path(client.download_artifacts(run, "large/big.bin")).read_bytes()).hexdigest()
    return [size, back == hashlib.sha256(file.read_bytes()).hexdigest()]


def routes(book, exp, run):
    """The artifact routes of the server, as a client without this package would use them."""
    root = f"{exp}/{run}/artifacts"
    at = "/api/2.0/mlflow-artifacts/artifacts"
    book.api("artifact/rest list", "GET", "artifacts/list", {"run_id": run, "path": "tree"}, show=lambda b: sorted(f["path"] for f in b["files"]))
    book.api("artifact/rest list root", "GET", "artifacts/list", {"run_id": run}, show=lambda b: [b["root_uri"], sorted(b["files"], key=lambda f: f["path"])[:3]])
    book.api("artifact/rest list by run_uuid", "GET", "artifacts/list", {"run_uuid": run, "path": "tree"}, show=lambda b: len(b["files"]))
    book.api("artifact/rest list none", "GET", "artifacts/list", {"run_id": run, "path": "none"})
    book.api("artifact/rest list up", "GET", "artifacts/list", {"run_id": run, "path": "../"})
    book.api("artifact/rest list unknown run", "GET", "artifacts/list", {"run_id": "0" * 32})
    book.wire("artifact/put", "PUT", f"{at}/{root}/raw/x.bin", raw=b"\x00\x01\x02", brief=True)
    book.wire("artifact/get", "GET", f"{at}/{root}/raw/x.bin")
    book.wire("artifact/put empty", "PUT", f"{at}/{root}/raw/nil", raw=b"", brief=True)
    book.wire("artifact/get missing", "GET", f"{at}/{root}/raw/none")
    book.wire("artifact/get a folder", "GET", f"{at}/{root}/raw")
    book.wire("artifact/list", "GET", at, query={"path": f"{root}/raw"}, show=lambda b: sorted(b.get("files", []), key=str))
    book.wire("artifact/list missing", "GET", at, query={"path": f"{root}/none"})
    for title, path in {"dots": "../../x", "encoded dots": "%2e%2e/%2e%2e/x", "dots within": f"{root}/a/../../../x", "twice encoded": "%252e%252e/x", "absolute": "%2Fetc%2Fpasswd", "back slash": "..%5C..%5Cx"}.items():
        book.wire(f"artifact/get with {title}", "GET", f"{at}/{path}")
        book.wire(f"artifact/put with {title}", "PUT", f"{at}/{path}", raw=b"x", brief=True)
    book.wire("artifact/list with dots", "GET", at, query={"path": "../.."})
    book.wire("artifact/ui get", "GET", "/get-artifact", query={"run_id": run, "path": "texts/a.txt"}, brief=True)
    book.wire("artifact/multipart", "POST", f"/api/2.0/mlflow-artifacts/mpu/create/{root}/mp.bin", {"path": "mp.bin", "num_parts": 2})


def removal(book, client, run):
    def act():
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
        place = get_artifact_repository(client.get_run(run).info.artifact_uri)
        place.delete_artifacts("texts/a.txt")
        return sorted(f.path for f in place.list_artifacts("texts"))
    book("artifact/delete file", act)

    def tree():
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
        place = get_artifact_repository(client.get_run(run).info.artifact_uri)
        place.delete_artifacts("tree")
        return sorted(f.path for f in place.list_artifacts())
    book("artifact/delete folder", tree)
    book("artifact/after delete", lambda: client.download_artifacts(run, "texts/a.txt"))
