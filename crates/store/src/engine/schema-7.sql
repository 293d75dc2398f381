-- Schedules that are on: when each is due next, or what it waits for.
create table schedules (
    workspace text not null,
    name text not null,
    -- Of those that wait for events: what about, and which.
    subject text not null default '',
    watch text not null default '',
    due_at integer,
    primary key (workspace, name)
);
create index schedules_by_time on schedules (due_at) where due_at is not null;
create index schedules_by_subject on schedules (workspace, subject) where subject <> '';

-- What has happened that a schedule waits for. A row is written with what it tells of and goes when it was acted on.
create table schedule_events (
    seq integer primary key autoincrement,
    workspace text not null,
    schedule text not null,
    event text not null,
    at integer not null
);

-- What schedules have started, and what they have not and why.
create table schedule_runs (
    seq integer primary key autoincrement,
    workspace text not null,
    schedule text not null,
    due_at integer not null,
    made_at integer not null,
    cause text not null,
    by_event integer not null,
    -- The job, or the deployment that was changed; null where nothing was started.
    made text,
    problem text,
    -- The schedules that led to this one by events, and this one: a list of names.
    chain text not null
);
create index schedule_runs_by_schedule on schedule_runs (workspace, schedule, seq desc);
create index schedule_runs_by_job on schedule_runs (workspace, made) where made is not null;
