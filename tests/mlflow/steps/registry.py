"""The model registry: models, versions, stages, aliases, tags, and what each refuses."""

import mlflow


def steps(book, at):
    client, p = at.client, at.p
    exp = book("registry/experiment", client.create_experiment, f"{p}.reg", called="exp reg")
    run = at.reg_run = book("registry/run", lambda: client.create_run(exp, start_time=1, run_name="reg").info.run_id, called="run reg")
    book("registry/files", lambda: [client.log_text(run, "weights", "model/w.txt"), client.log_text(run, "flavors: {}\n", "model/MLmodel")])
    at.place = book("registry/place", lambda: client.get_run(run).info.artifact_uri + "/model")
    models(book, client, p)
    versions(book, client, p, at)
    aliases(book, client, p)
    tags(book, client, p)
    stages(book, client, p, at)
    ends(book, client, p, at)
    fluent(book, at)


def pick(of, *names):
    return [getattr(of, name) for name in names]


def models(book, client, p):
    book("registered/create", client.create_registered_model, f"{p}.m", tags={"a": "1"}, description="what")
    book("registered/create twice", client.create_registered_model, f"{p}.m")
    book("registered/get", client.get_registered_model, f"{p}.m")
    book("registered/get unknown", client.get_registered_model, f"{p}.none")
    for title, name in {"empty": "", "spaces": "  ", "slash": f"{p}/x", "colon": f"{p}:x", "long": p + "n" * 300, "at sign": f"{p}@x", "unicode": f"{p} 模型", "quote": f"{p}'s", "none": None, "percent": f"{p}%41"}.items():
        book(f"registered/create, name {title}", lambda: client.create_registered_model(name).name)
    book("registered/update", lambda: client.update_registered_model(f"{p}.m", "other words").description)
    book("registered/update to nothing", lambda: client.update_registered_model(f"{p}.m", "").description)
    book("registered/update unknown", client.update_registered_model, f"{p}.none", "x")
    book("registered/rename", lambda: (client.rename_registered_model(f"{p}.m", f"{p}.n"), client.get_registered_model(f"{p}.n").name)[1])
    book("registered/rename back", lambda: (client.rename_registered_model(f"{p}.n", f"{p}.m"), client.get_registered_model(f"{p}.m").name)[1])
    book("registered/rename to taken", lambda: (client.create_registered_model(f"{p}.taken"), client.rename_registered_model(f"{p}.m", f"{p}.taken"))[1])
    book("registered/rename to nothing", lambda: client.rename_registered_model(f"{p}.m", ""))
    book("registered/rename to blank", lambda: client.rename_registered_model(f"{p}.m", " "))
    book("registered/rename unknown", client.rename_registered_model, f"{p}.none", f"{p}.x")
    book("registered/rename to itself", lambda: client.rename_registered_model(f"{p}.m", f"{p}.m"))
    book("registered/description long", lambda: len(client.update_registered_model(f"{p}.m", "d" * 5001).description))
    book("registered/tag too long", client.set_registered_model_tag, f"{p}.m", "k" * 251, "v")
    book("registered/tag value too long", client.set_registered_model_tag, f"{p}.m", "k", "v" * 100_001)
    book("registered/versions of none", client.get_latest_versions, f"{p}.m")


def versions(book, client, p, at):
    of = f"{p}.m"
    book("version/create", client.create_model_version, of, at.place, at.reg_run, tags={"v": "1"}, description="first")
    book("version/create second", lambda: pick(client.create_model_version(of, at.place, at.reg_run), "version", "status", "current_stage"))
    book("version/create without a run", lambda: client.create_model_version(of, "s3://bucket/model").source)
    for title, source in {"empty": "", "local": "/etc/passwd", "local file": "file:///etc", "dots": "s3://b/../../x", "dots encoded": "s3://b/%2e%2e/x", "proxied dots": "mlflow-artifacts:/../x", "models uri": f"models:/{of}/1", "unknown models uri": f"models:/{p}.none/1", "runs uri": f"runs:/{at.reg_run}/model", "relative": "model"}.items():
        book(f"version/create, source {title}", lambda: client.create_model_version(of, source).source)
    book("version/create, local source of a run", lambda: client.create_model_version(of, "/tmp", at.reg_run).source)
    book("version/create for unknown", client.create_model_version, f"{p}.none", at.place, at.reg_run)
    book("version/create of unknown run", lambda: client.create_model_version(of, at.place, "0" * 32).run_id)
    book("version/get", client.get_model_version, of, "1")
    book("version/get number", lambda: client.get_model_version(of, 1).version)
    for title, version in {"unknown": "99", "letters": "abc", "negative": "-1", "zero": "0", "float": "1.5", "empty": ""}.items():
        book(f"version/get {title}", lambda: client.get_model_version(of, version).version)
    book("version/get of unknown model", client.get_model_version, f"{p}.none", "1")
    book("version/update", lambda: client.update_model_version(of, "1", "new words").description)
    book("version/update unknown", lambda: client.update_model_version(of, "99", "x"))
    book("version/download uri", client.get_model_version_download_uri, of, "1")
    book("version/download uri of unknown", client.get_model_version_download_uri, of, "99")
    book("version/model shows latest", lambda: [[v.version, v.current_stage] for v in client.get_registered_model(of).latest_versions])
    book("version/download", lambda: sorted(f.path for f in mlflow.artifacts.list_artifacts(f"models:/{of}/1")))
    book("version/copy", lambda: pick(client.copy_model_version(f"models:/{of}/1", f"{p}.copy"), "name", "version", "source", "run_id"))


def aliases(book, client, p):
    of = f"{p}.m"
    book("alias/set", client.set_registered_model_alias, of, "champion", "1")
    book("alias/get", lambda: client.get_model_version_by_alias(of, "champion").version)
    book("alias/move", client.set_registered_model_alias, of, "champion", "2")
    book("alias/moved", lambda: [client.get_model_version_by_alias(of, "champion").version, client.get_model_version(of, "1").aliases, client.get_model_version(of, "2").aliases])
    book("alias/second", client.set_registered_model_alias, of, "other", "2")
    book("alias/of the model", lambda: client.get_registered_model(of).aliases)
    book("alias/case", lambda: client.get_model_version_by_alias(of, "Champion").version)
    for alias in ["latest", "Latest", "v1", "V22", "a b", "a.b", "a/b", "", "a" * 255, "a" * 256, "1", "モデル", "x-y_z", None]:
        book(f"alias/set {alias if alias is None or len(alias) < 20 else len(alias)!r}", client.set_registered_model_alias, of, alias, "1")
    book("alias/set unknown version", client.set_registered_model_alias, of, "ghost", "99")
    book("alias/set wrong version", client.set_registered_model_alias, of, "ghost", "x")
    book("alias/set unknown model", client.set_registered_model_alias, f"{p}.none", "ghost", "1")
    book("alias/get unknown", client.get_model_version_by_alias, of, "ghost")
    book("alias/get of unknown model", client.get_model_version_by_alias, f"{p}.none", "champion")
    book("alias/get latest", lambda: client.get_model_version_by_alias(of, "latest").version)
    book("alias/delete", client.delete_registered_model_alias, of, "champion")
    book("alias/delete twice", client.delete_registered_model_alias, of, "champion")
    book("alias/delete of unknown model", client.delete_registered_model_alias, f"{p}.none", "champion")
    book("alias/deleted", client.get_model_version_by_alias, of, "champion")
    book("alias/by uri", lambda: sorted(f.path for f in mlflow.artifacts.list_artifacts(f"models:/{of}@other")))


def tags(book, client, p):
    of = f"{p}.m"
    book("rtag/set", lambda: (client.set_registered_model_tag(of, "t", "1"), client.get_registered_model(of).tags)[1])
    book("rtag/overwrite", lambda: (client.set_registered_model_tag(of, "t", 2), client.get_registered_model(of).tags)[1])
    book("rtag/delete", lambda: (client.delete_registered_model_tag(of, "t"), client.get_registered_model(of).tags)[1])
    book("rtag/delete twice", client.delete_registered_model_tag, of, "t")
    book("rtag/unknown model", client.set_registered_model_tag, f"{p}.none", "t", "1")
    book("rtag/empty key", client.set_registered_model_tag, of, "", "1")
    book("vtag/set", lambda: (client.set_model_version_tag(of, "1", "t", "1"), client.get_model_version(of, "1").tags)[1])
    book("vtag/set number", lambda: (client.set_model_version_tag(of, "1", "n", 5), client.get_model_version(of, "1").tags)[1])
    book("vtag/delete", lambda: (client.delete_model_version_tag(of, "1", "t"), client.get_model_version(of, "1").tags)[1])
    book("vtag/delete twice", client.delete_model_version_tag, of, "1", "t")
    book("vtag/unknown version", client.set_model_version_tag, of, "99", "t", "1")
    book("vtag/unknown model", client.set_model_version_tag, f"{p}.none", "1", "t", "1")
    book("vtag/wrong version", client.set_model_version_tag, of, "x", "t", "1")
    book("vtag/bad key", client.set_model_version_tag, of, "1", "b!d", "1")
    book("vtag/key too long", client.set_model_version_tag, of, "1", "k" * 251, "1")


def stages(book, client, p, at):
    of = f"{p}.st"
    book("stage/plant", lambda: (client.create_registered_model(of), [client.create_model_version(of, at.place, at.reg_run).version for _ in range(4)])[1])
    move = lambda version, stage, archive=False: client.transition_model_version_stage(of, version, stage, archive).current_stage  # noqa: E731
    latest = lambda stages=None: sorted([v.current_stage, v.version] for v in client.get_latest_versions(of, stages))  # noqa: E731
    for version, stage, archive in [("1", "Staging", False), ("2", "Production", False), ("3", "production", True), ("4", "STAGING", True), ("1", "Archived", False), ("1", "None", False), ("2", "Canary", False), ("99", "Staging", False), ("x", "Staging", False), ("1", "", False), ("2", "Archived", True), ("2", "None", True), ("3", "Production", False)]:
        book(f"stage/{version} to {stage or 'nothing'}{' archiving' if archive else ''}", move, version, stage, archive)
        book(f"stage/{version} to {stage or 'nothing'}{' archiving' if archive else ''}, read", lambda: [[v.version, v.current_stage] for v in sorted(client.search_model_versions(f"name='{of}'"), key=lambda v: int(v.version))])
    for title, names in {"all": None, "two": ["Production", "Staging"], "lower case": ["production"], "none": ["None"], "wrong": ["Canary"], "empty": []}.items():
        book(f"stage/latest, {title}", latest, names)
    book("stage/latest of unknown model", lambda: client.get_latest_versions(f"{p}.none"))
    book("stage/words", lambda: client.get_model_version_stages(of, "1"))
    book("stage/by uri", lambda: sorted(f.path for f in mlflow.artifacts.list_artifacts(f"models:/{of}/Production")))
    book("stage/latest by uri", lambda: sorted(f.path for f in mlflow.artifacts.list_artifacts(f"models:/{of}/latest")))


def ends(book, client, p, at):
    of = f"{p}.end"
    book("end/plant", lambda: (client.create_registered_model(of), [client.create_model_version(of, at.place, at.reg_run).version for _ in range(3)], client.set_registered_model_alias(of, "a", "2"))[1])
    book("end/delete version", client.delete_model_version, of, "2")
    book("end/deleted version", client.get_model_version, of, "2")
    book("end/delete version twice", client.delete_model_version, of, "2")
    book("end/alias of it", client.get_model_version_by_alias, of, "a")
    book("end/aliases of the model", lambda: client.get_registered_model(of).aliases)
    book("end/delete last", client.delete_model_version, of, "3")
    book("end/next number", lambda: client.create_model_version(of, at.place, at.reg_run).version)
    book("end/update deleted", lambda: client.update_model_version(of, "2", "x"))
    book("end/tag deleted", lambda: client.set_model_version_tag(of, "2", "k", "v"))
    book("end/download uri of deleted", lambda: client.get_model_version_download_uri(of, "2"))
    book("end/delete model", client.delete_registered_model, of)
    book("end/deleted model", client.get_registered_model, of)
    book("end/versions of deleted", lambda: client.get_model_version(of, "1"))
    book("end/delete model twice", client.delete_registered_model, of)
    book("end/create again", lambda: (client.create_registered_model(of).latest_versions, client.create_model_version(of, at.place, at.reg_run).version)[1])
    book("end/rename with versions", lambda: (client.rename_registered_model(of, f"{of}2"), client.get_model_version(f"{of}2", "1").name)[1])


def fluent(book, at):
    if getattr(at, "info", None) is None:
        return
    name = f"{at.p}.fl"
    book("register/by uri", lambda: pick(mlflow.register_model(at.info.model_uri, name, tags={"x": "y"}), "name", "version", "run_id", "tags"))
    book("register/by run", lambda: pick(mlflow.register_model(f"runs:/{at.trained}/doubler", name), "version", "run_id"))
    book("register/source", lambda: at.client.get_model_version(name, "1").source)
    book("register/whole", lambda: at.client.get_model_version(name, "1"))
    book("register/load", lambda: type(mlflow.pyfunc.load_model(f"models:/{name}/1")).__name__)
    book("register/unknown path", lambda: mlflow.register_model(f"runs:/{at.trained}/none", name))
    book("register/unknown run", lambda: mlflow.register_model("runs:/" + "0" * 32 + "/m", name))
    book("register/tags of the logged model", lambda: mlflow.get_logged_model(at.info.model_id).tags.get("mlflow.modelVersions") if at.three else None)
