//! The keys of Spark programs, as jobs, steps and components.

use super::{
    Key, Kind, Object, PLAIN, key,
    parts::{CODE, ENVIRONMENT},
    pipeline::{INPUTS, OUTPUTS},
};

pub(super) const JOB: &[Key] =
    &[ENTRY.required(), CODE, PY_FILES, JARS, FILES, ARCHIVES, CONF, ARGS, SOFTWARE, RESOURCE, INPUTS, OUTPUTS];

pub(super) const ENTRY: Key = key("entry", Kind::Object(&PROGRAM), "What is run.");
pub(super) const PY_FILES: Key = key("py_files", TEXTS, "Python files and archives the program imports.");
pub(super) const JARS: Key = key("jars", TEXTS, "Java archives on the class path.");
pub(super) const FILES: Key = key("files", TEXTS, "Files in every executor's working folder.");
pub(super) const ARCHIVES: Key = key("archives", TEXTS, "Archives unpacked there.");
pub(super) const CONF: Key = key("conf", Kind::Map, "Spark's own settings, such as `spark.driver.cores`.");
pub(super) const ARGS: Key = key("args", Kind::Text, "The program's arguments; may use `${{inputs.x}}`.");
pub(super) const SOFTWARE: Key = key("environment", ENVIRONMENT, "The software it needs beside Spark.");
pub(super) const RESOURCE: Key = key("resources", Kind::Object(&RESOURCES), "The machines of serverless Spark.");

const TEXTS: Kind = Kind::List(&Kind::Text);

static PROGRAM: Object = Object {
    name: "entry",
    doc: "What is run: one of both.",
    keys: &[
        key("file", Kind::Text, "A Python file in the code folder."),
        key("class_name", Kind::Text, "A class in one of the Java archives."),
        key("spark_job_entry_type", Kind::Shown, "Filled in by the server."),
    ],
    ..PLAIN
};

static RESOURCES: Object = Object {
    name: "resources of Spark",
    doc: "The machines of serverless Spark.",
    keys: &[
        key("instance_type", Kind::Text, "The machine size."),
        key("runtime_version", Kind::Label, "Spark's version, such as `3.4`."),
    ],
    ..PLAIN
};
