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

-- A run that is a job has the job's status and times, written with them; its labels are the job's.
create table runs (
    seq integer primary key autoincrement,
    workspace text not null,
    run_id text not null,
    experiment integer not null,
    job_seq integer,
    name text not null,
    "user" text not null,
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

-- The latest value of each metric. A value that is no number has `nan` set and no value.
create table latest_metrics (
    run integer not null,
    key text not null,
    experiment integer not null,
    nan integer not null,
    value real,
    at integer not null,
    step integer not null,
    primary key (run, key)
) without rowid;
create index latest_by_value on latest_metrics (experiment, key, nan, value, run);

-- Points as they came, one row a request, until they are folded into `point_chunks` and `latest_metrics`. The last row
-- stays, emptied, so that requests are counted on.
create table point_batches (
    run integer not null,
    n integer not null,
    -- Of this row and those before it, since they were last folded; no rows where this one was folded too.
    rows integer not null,
    total_bytes integer not null,
    points blob not null,
    primary key (run, n)
) without rowid;

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
    context text,
    body text not null,
    primary key (run, name, digest)
) without rowid;

-- Models that a run has read or made.
create table run_models (
    run integer not null,
    made integer not null,
    model_id text not null,
    step integer,
    primary key (run, made, model_id)
) without rowid;

create table logged_models (
    seq integer primary key autoincrement,
    workspace text not null,
    model_id text not null,
    experiment integer not null,
    name text not null,
    model_type text,
    source_run text,
    status text not null,
    status_message text,
    deleted integer not null default 0,
    created_at integer not null,
    changed_at integer not null,
    tags text not null,
    params text not null
);
create unique index logged_models_by_id on logged_models (workspace, model_id);
create index logged_models_by_experiment on logged_models (experiment);

-- Points that tell of a model. A value that is no number is null; no dataset is an empty name.
create table model_points (
    seq integer primary key autoincrement,
    model integer not null,
    run_id text not null,
    key text not null,
    at integer not null,
    step integer not null,
    value real,
    dataset_name text not null,
    dataset_digest text not null
);
create unique index model_points_once on model_points (model, run_id, key, at, step, coalesce(value, 'nan'), dataset_name, dataset_digest);

insert into experiments (workspace, number, name, created_at, changed_at)
    select name, 0, 'Default', created_at, created_at from workspaces;
insert into experiments (workspace, number, name, created_at, changed_at)
    select workspace, row_number() over (partition by workspace order by min(seq)), experiment, min(created_at), min(created_at)
    from jobs where experiment <> 'Default' group by workspace, experiment;
insert into runs (workspace, run_id, experiment, job_seq, name, "user", status, started_at, ended_at, deleted_at)
    select j.workspace, j.name, e.seq, j.seq, j.name, j.created_by,
        case j.status when 'Completed' then 'FINISHED' when 'Failed' then 'FAILED' when 'Canceled' then 'KILLED'
            when 'Queued' then 'SCHEDULED' when 'Preparing' then 'SCHEDULED' else 'RUNNING' end,
        coalesce(json_extract(j.state, '$.started_at'), case j.phase when 'running' then json_extract(j.state, '$.since') end, j.created_at),
        case j.phase when 'ended' then json_extract(j.state, '$.at') end,
        case j.archived when 1 then j.changed_at end
    from jobs j join experiments e on e.workspace = j.workspace and e.name = j.experiment;
