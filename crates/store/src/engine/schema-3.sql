-- Tracking. An experiment's number is its id in its workspace; every workspace has number 0, `Default`.
create table experiments (
    seq integer primary key autoincrement,
    workspace text not null,
    number integer not null,
    name text not null,
    artifact_location text not null default '',
    deleted integer not null default 0,
    created_at integer not null,
    changed_at integer not null
);
create unique index experiments_by_name on experiments (workspace, name);
create unique index experiments_by_number on experiments (workspace, number);

create table experiment_tags (
    experiment integer not null,
    key text not null,
    value text not null,
    primary key (experiment, key)
) without rowid;

-- A run that is a job takes its status, times and labels from the job.
create table runs (
    seq integer primary key autoincrement,
    workspace text not null,
    run_id text not null,
    experiment integer not null,
    job_seq integer,
    name text not null,
    user text not null,
    status text not null,
    started_at integer not null,
    ended_at integer,
    deleted_at integer
);
create unique index runs_by_id on runs (workspace, run_id);
create index runs_by_experiment on runs (experiment, started_at desc, run_id);
create unique index runs_by_job on runs (job_seq) where job_seq is not null;

create table run_params (
    run integer not null,
    key text not null,
    value text not null,
    primary key (run, key)
) without rowid;

create table run_tags (
    run integer not null,
    key text not null,
    value text not null,
    primary key (run, key)
) without rowid;
create index tags_by_key on run_tags (key, value);

-- The latest value of each metric. A value that is no number has `nan` set and no value.
create table latest_metrics (
    run integer not null,
    key text not null,
    nan integer not null,
    value real,
    at integer not null,
    step integer not null,
    primary key (run, key)
) without rowid;
create index latest_by_value on latest_metrics (key, nan, value, run);

-- Points as they came, one row a request, until they are folded into `point_chunks` and `latest_metrics`.
create table point_batches (
    run integer not null,
    n integer not null,
    -- Of this row and those before it.
    total_bytes integer not null,
    points blob not null,
    primary key (run, n)
);

-- Points of one metric of one run, in the order they came.
create table point_chunks (
    run integer not null,
    key text not null,
    n integer not null,
    count integer not null,
    points blob not null,
    primary key (run, key, n)
) without rowid;

create table run_inputs (
    run integer not null,
    digest text not null,
    name text not null,
    body text not null,
    primary key (run, name, digest)
) without rowid;

create table logged_models (
    seq integer primary key autoincrement,
    workspace text not null,
    model_id text not null,
    experiment integer not null,
    run integer,
    name text not null,
    body text not null,
    status text not null,
    deleted integer not null default 0,
    created_at integer not null,
    changed_at integer not null
);
create unique index logged_models_by_id on logged_models (workspace, model_id);
create index logged_models_by_experiment on logged_models (experiment, created_at desc);

-- Names of models, for what belongs to no version: description, tags, aliases.
create table model_names (
    workspace text not null,
    name text not null,
    body text not null,
    created_at integer not null,
    changed_at integer not null,
    primary key (workspace, name)
);

insert into experiments (workspace, number, name, created_at, changed_at)
    select name, 0, 'Default', created_at, created_at from workspaces;
insert into experiments (workspace, number, name, created_at, changed_at)
    select workspace, row_number() over (partition by workspace order by min(seq)), experiment, min(created_at), min(created_at)
    from jobs where experiment <> 'Default' group by workspace, experiment;
insert into runs (workspace, run_id, experiment, job_seq, name, user, status, started_at)
    select j.workspace, j.name, e.seq, j.seq, j.name, j.created_by, '', j.created_at
    from jobs j join experiments e on e.workspace = j.workspace and e.name = j.experiment;
