//! The keys of environments, data and models.

use super::{
    Key, Kind, Object, PLAIN, key,
    parts::{CONTEXT, DESCRIPTION, ID, LATEST, SCHEMA},
};

const NAME: Key = key("name", Kind::Text, "The asset's name; may be given on the command line instead.");
const VERSION: Key = key("version", Kind::Label, "Chosen by you, or counted up when absent.");
const TAGS: Key = key("tags", Kind::Labels, "Words to find it by; can be changed later.");
const PROPERTIES: Key = key("properties", Kind::Labels, "Settings kept with it; cannot be changed later.");
const STORE: Key = key("datastore", Kind::Text, "Where a local path is uploaded to.").or("workspaceblobstore");

const IMAGE: Key = key("image", Kind::Text, "A container image.");
const CONDA: Key =
    key("conda_file", Kind::Either(&[Kind::Text, Kind::Map]), "A conda file's path, or its content written here.");
const BUILD: Key = key("build", Kind::Object(&BUILD_CONTEXT), "A folder with a Dockerfile.");
const INFERENCE: Key =
    key("inference_config", Kind::Object(&INFERENCE_CONFIG), "How a server in this environment is called.");
const OS: Key = key("os_type", Kind::Words(&["linux", "windows"]), "The operating system.").or("linux");

/// Where a build folder is uploaded to, and when the asset goes; both mean nothing here.
const UPLOAD: Key = key("datastore", Kind::Shown, "Kept for Azure; unused here.");
const DELETE: Key = key("auto_delete_setting", Kind::Shown, "Kept for Azure; unused here.");
const OWNER: Key = key("intellectual_property", Kind::Shown, "Filled in by the server.");

pub(super) static ENVIRONMENT: Object = Object {
    name: "environment",
    doc: "The software a job or deployment needs: an image, a conda file, both, or a Dockerfile.",
    keys: &[
        SCHEMA,
        NAME,
        VERSION,
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        IMAGE,
        CONDA,
        BUILD,
        INFERENCE,
        OS,
        UPLOAD,
        DELETE,
        ID,
        CONTEXT,
        LATEST,
        OWNER,
    ],
    ..PLAIN
};

pub(super) static INLINE_ENVIRONMENT: Object = Object {
    name: "environment, inline",
    doc: "An environment defined where it is used; `name` and `version` are accepted and not needed.",
    keys: &[
        SCHEMA,
        NAME,
        VERSION,
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        IMAGE,
        CONDA,
        BUILD,
        INFERENCE,
        OS,
        UPLOAD,
        DELETE,
        ID,
        CONTEXT,
        LATEST,
        OWNER,
    ],
    ..PLAIN
};

static BUILD_CONTEXT: Object = Object {
    name: "build",
    doc: "A folder with a Dockerfile.",
    keys: &[
        key("path", Kind::Text, "The folder.").required(),
        key("dockerfile_path", Kind::Text, "The Dockerfile in it.").or("Dockerfile"),
    ],
    ..PLAIN
};

static INFERENCE_CONFIG: Object = Object {
    name: "inference_config",
    doc: "How a server in this environment is called.",
    keys: &[
        key("liveness_route", Kind::Object(&ROUTE), "Answers when the server lives."),
        key("readiness_route", Kind::Object(&ROUTE), "Answers when it can take requests."),
        key("scoring_route", Kind::Object(&ROUTE), "Takes requests."),
    ],
    ..PLAIN
};

static ROUTE: Object = Object {
    name: "route",
    doc: "An address inside the container.",
    keys: &[
        key("path", Kind::Text, "The path of the URL.").required(),
        key("port", Kind::Int { min: 1, max: 65535 }, "The port.").required(),
    ],
    ..PLAIN
};

pub(super) static DATA: Object = Object {
    name: "data",
    doc: "A versioned file, folder or table.",
    keys: &[
        SCHEMA,
        NAME,
        VERSION,
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        key("type", Kind::Words(&["uri_folder", "uri_file", "mltable"]), "What lies at the path.").or("uri_folder"),
        key("path", Kind::Text, "A local path, which is uploaded, or a URI.").required(),
        STORE,
        key("auto_delete_setting", Kind::Object(&AUTO_DELETE), "Kept for Azure; unused here."),
        ID,
        CONTEXT,
        LATEST,
    ],
    ..PLAIN
};

static AUTO_DELETE: Object = Object {
    name: "auto_delete_setting",
    doc: "When the data may be removed.",
    keys: &[
        key("condition", Kind::Words(&["created_greater_than", "last_accessed_greater_than"]), "What is measured."),
        key("value", Kind::Label, "A number and a unit, such as `30d`."),
    ],
    ..PLAIN
};

const MODELS: &[&str] = &["custom_model", "mlflow_model", "triton_model"];

pub(super) static MODEL: Object = Object {
    name: "model",
    doc: "A versioned trained model.",
    keys: &[
        SCHEMA,
        NAME,
        VERSION,
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        key("type", Kind::Words(MODELS), "How the files are laid out.").or("custom_model"),
        key("path", Kind::Text, "A local path, `azureml://jobs/...`, `runs:/...`, or another URI.").required(),
        key("stage", Kind::Label, "Where the model is in its life, such as `Production`."),
        key("flavors", Kind::Map, "Frameworks that can load it, each with its settings."),
        STORE,
        key("job_name", Kind::Text, "The job that made it."),
        key("system_metadata", Kind::Shown, "Kept for Azure; unused here."),
        key("default_deployment_template", Kind::Shown, "Kept for Azure; unused here."),
        key("allowed_deployment_templates", Kind::Shown, "Kept for Azure; unused here."),
        key("utc_time_created", Kind::Shown, "Filled in by the server."),
        ID,
        CONTEXT,
        LATEST,
        OWNER,
    ],
    ..PLAIN
};

/// A model where a deployment names it. Files in the field write it without a path too.
pub(super) static INLINE_MODEL: Object = Object {
    name: "model, inline",
    doc: "A model registered together with its deployment.",
    keys: &[
        SCHEMA,
        NAME,
        VERSION,
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        key("type", Kind::Words(MODELS), "How the files are laid out.").or("custom_model"),
        key("path", Kind::Text, "A local path, `azureml://jobs/...`, `runs:/...`, or another URI."),
        key("stage", Kind::Label, "Where the model is in its life, such as `Production`."),
        key("flavors", Kind::Map, "Frameworks that can load it, each with its settings."),
        STORE,
        ID,
        CONTEXT,
        LATEST,
    ],
    ..PLAIN
};
