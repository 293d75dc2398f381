//! The keys of schedules.

use super::{
    Key, Kind, Object, PLAIN, Variant,
    job::{DISTRIBUTION, IDENTITY, LIMITS, QUEUE_SETTINGS, RESOURCES, SERVICE_VALUE},
    key,
    parts::{COMPUTE, CONTEXT, DESCRIPTION, ENVIRONMENT, ID, SCHEMA, STATE, TAGS, VARIABLES},
    pipeline::{INPUTS, OUTPUTS, SETTINGS},
};

pub(super) static SCHEDULE: Object = Object {
    name: "schedule",
    doc: "When a job is made, again and again.",
    keys: &[
        SCHEMA,
        key("name", Kind::Text, "The schedule's name.").required(),
        key("display_name", Kind::Label, "Shown in lists."),
        DESCRIPTION,
        TAGS,
        key("properties", Kind::Labels, "Settings kept with it."),
        key("trigger", Kind::Object(&TRIGGER), "When.").required(),
        key(
            "create_job",
            Kind::Either(&[Kind::Text, Kind::Object(&CREATE_JOB)]),
            "What: a job's file, `azureml:name`, or one of them with changes.",
        ),
        key(
            "update_deployment",
            Kind::Object(&UPDATE_DEPLOYMENT),
            "A deployment that gets the model whose new version is the trigger; Peregrine's own.",
        ),
        key("create_monitor", Kind::Map, "A model monitor; kept, and cannot run here."),
        key("import_data", Kind::Any, "A data import; kept, and cannot run here."),
        key("is_enabled", Kind::Shown, "Filled in by the server."),
        ID,
        CONTEXT,
        STATE,
    ],
    ..PLAIN
};

const TYPE: Key = key("type", Kind::Words(&["cron", "recurrence"]), "The way it is written.").required();
const TRIGGER_TYPE: Key =
    key("type", Kind::Words(&["cron", "recurrence", "event"]), "The way it is written; `event` is Peregrine's own.")
        .required();
const START: Key = key("start_time", Kind::Text, "The first moment, such as `2026-01-31T08:00:00`; now when absent.");
const ZONE: Key = key("time_zone", Kind::Text, "The zone of those times.").or("UTC");
const CRON: Variant = Variant {
    word: "cron",
    doc: "As five fields.",
    keys: &[key("expression", Kind::Text, "Minute, hour, day, month, day of the week.").required()],
};
const FREQUENCY: Key =
    key("frequency", Kind::Words(&["minute", "hour", "day", "week", "month"]), "The unit.").required();

static TRIGGER: Object = Object {
    name: "trigger",
    doc: "When.",
    keys: &[TRIGGER_TYPE, START, key("end_time", Kind::Text, "The last moment; none when absent."), ZONE],
    variants: &[
        CRON,
        Variant {
            word: "recurrence",
            doc: "As a distance.",
            keys: &[
                FREQUENCY,
                key("interval", Kind::POSITIVE, "How many of it.").required(),
                key("schedule", Kind::Object(&PATTERN), "At which times of a day, week or month."),
                key("pattern", Kind::Object(&PATTERN), "Another name of `schedule`."),
            ],
        },
        Variant {
            word: "event",
            doc: "As something that happens in the workspace.",
            keys: &[
                key(
                    "on",
                    Kind::Words(&["data", "model", "job"]),
                    "A new version of data or a model, or the end of a job.",
                )
                .required(),
                key("name", Kind::Text, "Whose; the beginning of a name and `*` for several."),
                key("experiment_name", Kind::Text, "The experiment of a job."),
                key("status", Kind::Either(&[END, Kind::List(&END)]), "How a job has ended.").or("completed"),
            ],
        },
    ],
    ..PLAIN
};

const END: Kind = Kind::Words(&["completed", "failed", "canceled"]);

static UPDATE_DEPLOYMENT: Object = Object {
    name: "update_deployment",
    doc: "A deployment that gets a new model.",
    keys: &[
        key("endpoint_name", Kind::Text, "The online endpoint.").required(),
        key("name", Kind::Text, "The deployment under it.").required(),
    ],
    ..PLAIN
};

const HOURS: Kind = Kind::Int { min: 0, max: 23 };
const MINUTES: Kind = Kind::Int { min: 0, max: 59 };
const MONTH_DAYS: Kind = Kind::Int { min: 1, max: 31 };
const WEEK_DAYS: Kind = Kind::Words(&["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]);

static PATTERN: Object = Object {
    name: "schedule of a recurrence",
    doc: "At which times of a day, week or month; one value or a list.",
    keys: &[
        key("hours", Kind::Either(&[HOURS, Kind::List(&HOURS)]), "0 to 23.").required(),
        key("minutes", Kind::Either(&[MINUTES, Kind::List(&MINUTES)]), "0 to 59.").required(),
        key("week_days", Kind::Either(&[WEEK_DAYS, Kind::List(&WEEK_DAYS)]), "Names of days."),
        key("month_days", Kind::Either(&[MONTH_DAYS, Kind::List(&MONTH_DAYS)]), "1 to 31."),
    ],
    ..PLAIN
};

/// When a compute instance starts and stops.
pub(super) static START_STOP: Object = Object {
    name: "schedules",
    doc: "When it starts and stops.",
    keys: &[key("compute_start_stop", Kind::List(&START_STOP_VALUE), "One entry for each.")],
    ..PLAIN
};

static START_STOP_VALUE: Kind = Kind::Object(&START_OR_STOP);

static START_OR_STOP: Object = Object {
    name: "compute_start_stop",
    doc: "When it starts, or stops.",
    keys: &[
        key("action", Kind::Words(&["start", "stop"]), "Which of both.").required(),
        key("trigger", Kind::Object(&MACHINE_TRIGGER), "When."),
        key("state", Kind::Words(&["enabled", "disabled"]), "Whether it holds.").or("enabled"),
    ],
    ..PLAIN
};

static MACHINE_TRIGGER: Object = Object {
    name: "trigger of a machine",
    doc: "When it starts, or stops.",
    keys: &[TYPE, START, ZONE],
    variants: &[
        CRON,
        Variant {
            word: "recurrence",
            doc: "As a distance.",
            keys: &[
                FREQUENCY,
                key("interval", Kind::POSITIVE, "How many of it."),
                key("schedule", Kind::Object(&MACHINE_PATTERN), "At which times of a day or week."),
            ],
        },
    ],
    ..PLAIN
};

static MACHINE_PATTERN: Object = Object {
    name: "schedule of a machine",
    doc: "At which times of a day or week.",
    keys: &[
        key("hours", Kind::List(&HOURS), "0 to 23."),
        key("minutes", Kind::List(&MINUTES), "0 to 59."),
        key("week_days", Kind::List(&WEEK_DAYS), "Names of days."),
    ],
    ..PLAIN
};

const WORK: Key = key("job", Kind::Text, "The job: its file, or `azureml:name`.").required();

static CREATE_JOB: Object = Object {
    name: "create_job",
    doc: "A job with changes.",
    keys: &[
        SCHEMA,
        key("type", Kind::Words(&["pipeline", "command", "spark"]), "The kind of job."),
        WORK,
        key("name", Kind::Text, "Ignored: each job gets a name of its own."),
        key("display_name", Kind::Label, "Shown in lists."),
        key("experiment_name", Kind::Label, "Groups runs."),
        DESCRIPTION,
        TAGS,
        key("properties", Kind::Labels, "Settings kept with each job."),
        key("services", Kind::MapOf(&SERVICE_VALUE), "Interactive programs that run beside it."),
        key("identity", Kind::Object(&IDENTITY), "As whom it reads data."),
        COMPUTE,
        ID,
        CONTEXT,
    ],
    variants: &[
        Variant {
            word: "pipeline",
            doc: "A pipeline.",
            keys: &[INPUTS, OUTPUTS, key("settings", Kind::Object(&SETTINGS), "What holds for every step.")],
        },
        Variant {
            word: "command",
            doc: "A command.",
            keys: &[
                INPUTS,
                OUTPUTS,
                key("environment", ENVIRONMENT, "The software it needs."),
                VARIABLES,
                key("distribution", Kind::Object(&DISTRIBUTION), "How it is spread over processes and nodes."),
                key("resources", Kind::Object(&RESOURCES), "What each node of it gets."),
                key("limits", Kind::Object(&LIMITS), "When to stop it."),
                key("queue_settings", Kind::Object(&QUEUE_SETTINGS), "How it waits."),
            ],
        },
        Variant {
            word: "spark",
            doc: "A Spark program.",
            keys: &[
                key("conf", Kind::Map, "Spark's own settings."),
                key("environment", ENVIRONMENT, "The software it needs beside Spark."),
            ],
        },
    ],
    ..PLAIN
};
